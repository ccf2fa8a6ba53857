"""ONNX models: real ones, deployed and run by onnxruntime."""

import os

import numpy as np
import onnx
import pytest
from bundles import unpacked
from onnx import TensorProto, helper, numpy_helper

import topsail
from topsail import bundle, testing
from topsail.deploy.failure import DeployFailed
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.refusal import Refused

WEIGHTS = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], "float32")


def linear(batch="n", dtype=TensorProto.FLOAT, weights=WEIGHTS):
    """x @ W, and the larger of the two as a second output."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("ArgMax", ["y"], ["k"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", dtype, [batch, weights.shape[0]])],
        [
            helper.make_tensor_value_info("y", dtype, [batch, weights.shape[1]]),
            helper.make_tensor_value_info("k", TensorProto.INT64, [batch]),
        ],
        [numpy_helper.from_array(weights, "w")],
    )
    return model(graph)


def image():
    """The sum of the pixels of pictures of 2 by 2."""
    axes = numpy_helper.from_array(np.array([1, 2], "int64"), "axes")
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    return model(helper.make_graph([node], "image", [x], [y], [axes]))


def model(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def loaded(tmp_path, model, **options):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return load(Folder(unpacked(tmp_path, "onnx", "model.onnx", {"model.onnx": data}, options=options)))


def outputs(model, inputs, kind="doubles"):
    answers = testing.run(model, inputs, kind)
    assert [a.error for a in answers if a.error] == []
    return [a.output for a in answers]


@pytest.mark.parametrize("give", ["object", "bytes", "path"])
def test_deployed(client, management, tmp_path, give):
    data = linear().SerializeToString()
    (tmp_path / "linear.onnx").write_bytes(data)
    given = {"object": linear(), "bytes": data, "path": tmp_path / "linear.onnx"}[give]
    deployed = topsail.deploy_onnx("linear", given, [1.0, 0.0, 0.0], client=client, progress=False)
    assert deployed.predict([1, 1, 1]).output == [6.0, 60.0]
    [stored] = management.artifacts.values()
    manifest = bundle.read(stored).manifest
    assert [r.partition("==")[0].removesuffix("-gpu") for r in manifest.requirements] == ["numpy", "onnxruntime"]


def test_an_output_by_its_name(client, tmp_path):
    deployed = topsail.deploy_onnx("linear", linear(), [1.0, 0.0, 0.0], output="k", client=client, progress=False)
    assert deployed.predict([1, 1, 1]).output == 1
    with pytest.raises(Refused, match="the model has no output 'z': it has y, k"):
        loaded(tmp_path, linear(), output="z")


@pytest.mark.parametrize("batch", ["n", 1])
def test_batches_of_any_size_and_models_for_one(tmp_path, batch):
    assert outputs(loaded(tmp_path, linear(batch)), [[1, 0, 0], [0, 1, 0]]) == [[1.0, 10.0], [2.0, 20.0]]


@pytest.mark.parametrize("kind", ["ints", "floats", "doubles", "bytes"])
def test_inputs_become_what_the_model_takes(tmp_path, kind):
    model = loaded(tmp_path, linear(dtype=TensorProto.DOUBLE, weights=WEIGHTS.astype("float64")))
    x = b"\x01\x00\x00" if kind == "bytes" else [1, 0, 0]
    assert outputs(model, [x], kind) == [[1.0, 10.0]]


def test_pictures_travel_flat(client):
    picture = np.arange(4, dtype="float32").reshape(2, 2)
    deployed = topsail.deploy_onnx("image", image(), picture, client=client, progress=False)
    assert deployed.predict(picture).output == 6.0
    assert deployed.client.predict("image", [1, 1, 1, 1]).output == 4.0


def test_what_is_no_model(tmp_path, client):
    with pytest.raises(Refused, match="cannot load model.onnx"):
        loaded(tmp_path, b"junk")
    with pytest.raises(DeployFailed, match="cannot be read: No such file"):
        topsail.deploy_onnx("x", tmp_path / "none.onnx", [1.0], client=client)
    with pytest.raises(DeployFailed, match="the model is a int: give a path, bytes, or an object of the package onnx"):
        topsail.deploy_onnx("x", 7, [1.0], client=client)
    with pytest.raises(Refused, match="the option threads = 'many' is no number of threads"):
        loaded(tmp_path, linear(), threads="many")


def test_models_of_two_inputs(tmp_path):
    two = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "ab"]
    node = helper.make_node("Add", ["a", "b"], ["y"])
    graph = helper.make_graph([node], "add", two, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])])
    with pytest.raises(Refused, match=r"the model has 2 inputs \(a, b\), and a query has one"):
        loaded(tmp_path, model(graph))


def test_the_package_makes_models_that_are_valid():
    onnx.checker.check_model(linear())
    onnx.checker.check_model(image())


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="for machines without a GPU")
def test_a_model_for_a_gpu_from_a_machine_without_one(tmp_path, client, management):
    """It is tried on the CPU, asks for a GPU, and does not go on without one where it is served."""
    topsail.deploy_onnx("linear", linear(), [1.0, 0.0, 0.0], device="cuda", client=client, progress=False)
    [stored] = management.artifacts.values()
    made = bundle.read(stored)
    assert management.versions["linear"]["1"]["resources"] == {"gpu": {"count": 1}}
    assert any(r.startswith("onnxruntime-gpu[cuda,cudnn]") for r in made.manifest.requirements)
    made.unpack(tmp_path / "linear")
    with pytest.raises(Refused, match=r"the option device is cuda, and onnxruntime [\d.]+ (is a build for|cannot use)"):
        load(Folder(tmp_path / "linear"))


def test_auto_goes_on_with_the_cpu(tmp_path):
    assert outputs(loaded(tmp_path, linear(), device="auto"), [[1, 1, 1]]) == [[6.0, 60.0]]
