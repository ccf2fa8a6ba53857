"""What Clipper's containers do with a folder of its deployers: the function `func.pkl`, and a model that it takes."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..runtime import pickled, pyspark
from ..runtime.failure import need
from ..runtime.folder import Folder

# The modules that a model takes, by what its deployer saves it as.
LIBRARIES = {
    "metadata.json": ("pyspark", "numpy"),
    "pytorch_model.pkl": ("torch",),
    "keras_model.h5": ("keras",),
    "model.onnx": ("onnxruntime", "onnx"),
}


class Model:
    """The folder is the working directory. Outputs are texts, as Clipper has them; its gateway reads those that are
    JSON, and so does ours."""

    def __init__(self) -> None:
        """It raises PermanentFailure, or what the model's own code raises."""
        here = Path.cwd()
        sys.path.append(str(here / "modules"))
        self._function = pickled.load(here / "func.pkl")
        self._session = pyspark.start("local[1]") if (here / "metadata.json").exists() else None
        self._before = () if self._session is None else (self._session,)  # arguments before the inputs
        if (model := self._model(here)) is not None:
            self._before += (model,)

    def predict(self, inputs: list[Any]) -> list[str]:
        inputs = [signed(value) for value in inputs]
        with nullcontext() if self._session is None else pyspark.java_of(self._session):
            return [str(output) for output in self._function(*self._before, inputs)]

    def teardown(self) -> None:
        if self._session is not None:
            self._session.stop()

    def _model(self, here: Path) -> Any:
        if self._session is not None:
            of_class = json.loads((here / "metadata.json").read_text())["model_class"]
            return pyspark.saved(self._session, of_class, here / "pyspark_model_data")
        if (here / "pytorch_model.pkl").exists():
            module = pickled.load(here / "pytorch_model.pkl")
            module.load_state_dict(need("torch").load(here / "pytorch_weights.pkl", map_location="cpu"))
            return module
        if (here / "keras_model.h5").exists():
            os.environ["KERAS_BACKEND"] = Folder(here).option("backend", "tensorflow")
            return need("keras").models.load_model(str(here / "keras_model.h5"))
        if (here / "model.onnx").exists():
            return need("onnxruntime.backend").prepare(str(here / "model.onnx"), "CPU")
        return None


def signed(value: Any) -> Any:
    """Bytes are numpy.int8 in Clipper's containers, and numpy.uint8 in ours."""
    return value.view("int8") if getattr(value, "dtype", None) == "uint8" else value
