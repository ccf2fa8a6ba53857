"""Writes two models as other servers serve them into a folder: of scikit-learn for MLServer, and of Triton's Python
backend."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import joblib
from sklearn.linear_model import LogisticRegression

SETTINGS = {
    "name": "flowers",
    "implementation": "mlserver_sklearn.SKLearnModel",
    "parameters": {"uri": "./model.joblib", "version": "v0.1.0"},
    "inputs": [{"name": "petals", "datatype": "FP32", "shape": [-1, 2]}],
    "outputs": [{"name": "predict", "datatype": "INT64", "shape": [-1, 1]}],
    "max_batch_size": 16,
}

CONFIG = """
name: "greeter"
backend: "python"
max_batch_size: 8
input [ { name: "NAME" data_type: TYPE_STRING dims: [ 1 ] }, { name: "NUMBERS" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "GREETING" data_type: TYPE_STRING dims: [ 1 ] }, { name: "SUM" data_type: TYPE_FP64 dims: [ 1 ] } ]
parameters { key: "greeting" value: { string_value: "Hello" } }
"""

MODEL = """
import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.greeting = config["parameters"]["greeting"]["string_value"]
        self.dtype = pb_utils.triton_string_to_numpy(pb_utils.get_output_config_by_name(config, "SUM")["data_type"])

    def execute(self, requests):
        return [self.answer(r) for r in requests]

    def answer(self, request):
        name = pb_utils.get_input_tensor_by_name(request, "NAME").as_numpy()[0, 0].decode()
        numbers = pb_utils.get_input_tensor_by_name(request, "NUMBERS").as_numpy()
        if not name:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("who is it?"))
        greeting = np.array([[f"{self.greeting} {name}".encode()]], dtype=np.object_)
        total = numbers.sum(axis=1, keepdims=True).astype(self.dtype)
        return pb_utils.InferenceResponse([pb_utils.Tensor("GREETING", greeting), pb_utils.Tensor("SUM", total)])
"""


def main(folder: Path) -> None:
    flowers, greeter = folder / "flowers", folder / "greeter"
    (greeter / "1").mkdir(parents=True)
    flowers.mkdir()
    (flowers / "model-settings.json").write_text(json.dumps(SETTINGS))
    (flowers / "requirements.txt").write_text("".join(f"{p}=={version(p)}\n" for p in ("scikit-learn", "numpy")))
    joblib.dump(LogisticRegression().fit([[0, 0], [1, 1]] * 5, [7, 8] * 5), flowers / "model.joblib")
    (greeter / "config.pbtxt").write_text(CONFIG)
    (greeter / "1" / "model.py").write_text(MODEL)
    (greeter / "requirements.txt").write_text(f"numpy=={version('numpy')}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
