"""Models of Triton's Python backend, as `topsail import` packs them."""

import json
import sys

import pytest
from bundles import unpacked

from topsail import testing
from topsail.container.signature import Signature, Tensor
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.triton_backend import InferenceRequest, TritonModelException, triton_string_to_numpy

ADDER = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils
from helpers import scale

class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        self.args = args
        self.dtype = pb_utils.triton_string_to_numpy(
            pb_utils.get_output_config_by_name(self.config, "SUM")["data_type"])
        self.offset = float(self.config["parameters"]["offset"]["string_value"])
        with open(f"{args['model_repository']}/{args['model_version']}/unit") as file:
            self.unit = file.read()
        assert pb_utils.get_input_config_by_name(args["model_config"], "nothing") is None
        pb_utils.Logger.log_info("initialized")

    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            text = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()
            if x.max() > 100:
                error = pb_utils.TritonError("too large", pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse(output_tensors=[], error=error))
                continue
            if x.max() > 10:
                raise pb_utils.TritonModelException("large")
            x *= scale  # requests are its own
            said = f"{text.shape} {text[0, 0].decode()} {len(requests)} {self.unit}".encode()
            total = (x.sum(axis=1, keepdims=True) + self.offset).astype(self.dtype)
            responses.append(pb_utils.InferenceResponse(
                [pb_utils.Tensor("SUM", total), pb_utils.Tensor("SAID", np.array([[said]], dtype=object)),
                 pb_utils.Tensor("more", x)]))
        return responses

    def finalize(self):
        open("finalized", "w").close()
"""

SIGNATURE = Signature(
    (Tensor("X", "float32", (-1,)), Tensor("TEXT", "bytes", (1,))),
    (Tensor("SUM", "float64", (1,)), Tensor("SAID", "string", (1,))),
)


def told(batch=8, inputs=("X", "TEXT"), outputs=("SUM", "SAID")):
    kinds = {"X": "TYPE_FP32", "TEXT": "TYPE_STRING", "SUM": "TYPE_FP64", "SAID": "TYPE_STRING"}
    tensors = {name: {"name": name, "data_type": kinds[name], "dims": [-1]} for name in (*inputs, *outputs)}
    config = {"name": "adder", "max_batch_size": batch, "parameters": {"offset": {"string_value": "0.5"}}}
    config |= {"input": [tensors[n] for n in inputs], "output": [tensors[n] for n in outputs]}
    return json.dumps({"file": "model.py", "version": "3", "kind": "CPU", "config": config}).encode()


def bundle(tmp_path, model, signature, config):
    files = {"3/model.py": model.encode(), "3/unit": b"m", "3/helpers.py": b"scale = 2", "triton.json": config}
    return unpacked(tmp_path, "python", "topsail.runtime.triton:Model", files, signature=signature)


@pytest.fixture
def loaded(monkeypatch):
    """Loads a bundle as its own process would, from its folder."""
    known = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def loaded(folder):
        monkeypatch.chdir(folder)
        return load(Folder(folder))

    yield loaded
    for name in {"model", "helpers"} - known:
        sys.modules.pop(name, None)


def test_each_query_is_a_request(tmp_path, loaded):
    model = loaded(bundle(tmp_path, ADDER, SIGNATURE, told()))
    queries = [{"X": [1, 2], "TEXT": [b"a"]}, {"X": [3], "TEXT": ["ö".encode()]}]
    one, two = testing.run(model, queries)
    assert one.outputs == {"SUM": [6.5], "SAID": ["(1, 1) a 2 m"]}
    assert two.outputs == {"SUM": [6.5], "SAID": ["(1, 1) ö 2 m"]}
    failed, raised, good = testing.run(model, [{"X": [n], "TEXT": [b"a"]} for n in (1000, 11, 1)])
    assert failed.error == "Error: too large"
    assert raised.error == "TritonModelException: large"
    assert good.outputs == {"SUM": [2.5], "SAID": ["(1, 1) a 1 m"]}  # alone, after the batch failed
    model.teardown()
    assert (tmp_path / "bundle" / "finalized").exists()


PLAIN = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(*[t.as_numpy() for t in r.inputs()]) for r in requests]

    def answer(self, x):
        said = {1: None, 2: b"\\xff", 3: str(x.shape)}[x.shape[-1]]
        return said and pb_utils.InferenceResponse([pb_utils.Tensor("SAID", np.array([said, said][:len(x)]))])
"""
PLAIN_OUTPUT = (Tensor("SAID", "string", (-1,)),)


def plain(tmp_path, shape, model=PLAIN, batch=0):
    signature = Signature((Tensor("X", "float32", shape),), PLAIN_OUTPUT)
    return bundle(tmp_path, model, signature, told(batch, inputs=("X",), outputs=("SAID",)))


@pytest.mark.parametrize("model", [PLAIN, PLAIN.replace("def execute", "async def execute")])
def test_without_batches_tensors_are_as_clients_send_them(tmp_path, loaded, model):
    [answer] = testing.run(loaded(plain(tmp_path, (-1, 3), model)), [{"X": [[1, 2, 3]] * 2}])
    assert answer.output == ["(2, 3)", "(2, 3)"]


@pytest.mark.parametrize(
    "x, model, batch, why",
    [
        ([[1]], PLAIN, 0, "Error: execute returned no response for this request"),
        ([[1, 2]], PLAIN, 0, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"),
        ([[1, 2, 3]], PLAIN.replace("in requests]", "in ()]"), 0, "a list of 1 responses, one for each request"),
        (
            [[1, 2, 3]],
            PLAIN.replace("len(x)", "2"),
            4,
            "output 'SAID' has the shape (2,), and a batch of 1 was asked for",
        ),
    ],
)
def test_responses_that_cannot_be_answers(tmp_path, loaded, x, model, batch, why):
    [answer] = testing.run(loaded(plain(tmp_path, (-1, -1), model, batch)), [{"X": x}])
    assert why in answer.error


def test_outside_of_a_bundle(tmp_path, loaded):
    folder = unpacked(tmp_path, "python", "topsail.runtime.triton:Model", {"model.py": b""})
    with pytest.raises(PermanentFailure, match=r"no triton\.json, which `topsail import` writes"):
        loaded(folder)


def test_names_of_types():
    names = "BOOL INT8 UINT64 FP16 FP32 FP64 BF16 STRING"
    found = [triton_string_to_numpy(f"TYPE_{name}").__name__ for name in names.split()]
    assert (
        found == ["bool", "int8", "uint64", "float16", "float32", "float64", "float32", "object_"]
        or found[-1] == "object"
    )


def test_other_models_cannot_be_called():
    with pytest.raises(TritonModelException, match="make both stages of an app"):
        InferenceRequest(model_name="other", inputs=[]).exec()
