"""Clipper's own deployer of ONNX, its code unchanged, and onnxruntime itself. PyTorch does no more in it than write the
file of the model, so a stand-in that writes a real one does."""

import sys
from importlib.metadata import version
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import requests
from clipper_admin import ClipperConnection
from onnx import TensorProto, checker, helper, numpy_helper, save

from topsail import bundle
from topsail.clipper import TopsailContainerManager


def export(factors, inputs, path, export_params):
    """As torch.onnx._export: x @ factors."""
    assert export_params
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", len(inputs[0])])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])]
    weights = numpy_helper.from_array(np.array(factors, "float32"), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "linear", given, made, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    save(model, path)


@pytest.fixture
def deploy(monkeypatch):
    torch = ModuleType("torch")
    torch.onnx = SimpleNamespace(_export=export)
    monkeypatch.setitem(sys.modules, "torch", torch)
    from clipper_admin.deployers import onnx

    yield onnx.deploy_pytorch_model
    sys.modules.pop("clipper_admin.deployers.onnx")


def predict(backend, inputs):
    [outputs] = backend.run(np.asarray(inputs, "float32"))
    return [f"{y:g}" for y in outputs]


def test_a_model_with_a_function(deploy, management):
    clipper = ClipperConnection(TopsailContainerManager(query_addr=management.addr, admin_addr=management.addr))
    clipper.connect()
    deploy(clipper, "net", 1, "doubles", [[1.0, 1.0]], predict, [2.0, 3.0])
    clipper.register_application("net", "doubles", "?", 2_000_000)
    clipper.link_model_to_app("net", "net")
    for x, y in {(1.0, 0.0): 2, (2.0, 1.0): 7}.items():
        answer = requests.post(f"http://{management.addr}/net/predict", json={"input": x}, timeout=60).json()
        assert (answer["output"], answer["default"]) == (y, False)
    [data] = management.artifacts.values()
    needed = bundle.read(data).manifest.requirements
    assert {f"onnxruntime=={version('onnxruntime')}", f"onnx=={version('onnx')}"} <= {*needed}
