"""Runs a model of Triton's Python backend: `topsail import` makes bundles of them, with their configuration in
triton.json."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..container import source
from ..output import Error
from . import triton_backend
from .failure import PermanentFailure, need
from .triton_backend import InferenceRequest, InferenceResponse, Tensor, triton_string_to_numpy

_FILE, _CLASS = "triton.json", "TritonPythonModel"


class Model:
    """Each query is a request, and a batch of them a call of execute."""

    def __init__(self) -> None:
        """It raises PermanentFailure outside of a bundle that `topsail import` has made."""
        self._numpy = need("numpy")
        try:
            told = json.loads(Path(_FILE).read_text())
        except OSError as e:
            raise PermanentFailure(f"the bundle has no {_FILE}, which `topsail import` writes: {e.strerror}") from None
        self._config = told["config"]
        self._rows = self._config["max_batch_size"] > 0
        self._dtypes = {t["name"]: triton_string_to_numpy(t["data_type"]) for t in self._config["input"]}
        self._outputs = [t["name"] for t in self._config["output"]]
        file = os.path.join(told["version"], told["file"])
        sys.modules.setdefault("triton_python_backend_utils", triton_backend)
        self._model: Any = source.find(f"{file}:{_CLASS}")()
        self._arguments = {
            "model_config": json.dumps(self._config),
            "model_instance_kind": told["kind"],
            "model_instance_name": f"{self._config['name']}_0",
            "model_instance_device_id": "0",
            "model_repository": os.getcwd(),
            "model_version": told["version"],
            "model_name": self._config["name"],
        }

    def setup(self) -> None:
        if hasattr(self._model, "initialize"):
            self._model.initialize(self._arguments)

    def teardown(self) -> None:
        if hasattr(self._model, "finalize"):
            self._model.finalize()

    def predict(self, inputs: list[Mapping[str, Any]]) -> list[Any]:
        requests = [InferenceRequest(list(map(self._tensor, x, x.values())), self._outputs) for x in inputs]
        responses = self._model.execute(requests)
        if inspect.iscoroutine(responses):
            responses = asyncio.run(responses)
        if not isinstance(responses, list) or len(responses) != len(inputs):
            raise ValueError(f"execute must return a list of {len(inputs)} responses, one for each request")
        return list(map(self._output, responses))

    def _tensor(self, name: str, x: Any) -> Tensor:
        array = self._numpy.array(x, self._dtypes[name])  # a copy, which the model may write to
        return Tensor(name, array[None] if self._rows else array)

    def _output(self, response: InferenceResponse | None) -> Any:
        """A dict of arrays, or why there is none."""
        if response is None:
            return Error("execute returned no response for this request")
        if error := response.error():
            return Error(error.message())
        return {
            t.name(): self._array(t)
            for t in response.output_tensors()
            if t.name() in self._outputs or not self._outputs
        }

    def _array(self, tensor: Tensor) -> Any:
        array = tensor.as_numpy()
        if self._rows:
            if array.shape[:1] != (1,):
                raise ValueError(
                    f"output {tensor.name()!r} has the shape {array.shape}, and a batch of 1 was asked for"
                )
            array = array[0]
        return _texts(array.tolist() if hasattr(array, "tolist") else array) if _is_text(array) else array


def _is_text(array: Any) -> bool:
    return isinstance(array, str | bytes) or array.dtype.kind in "OSU"


def _texts(x: Any) -> Any:
    """Texts from bytes, nested as they are. It raises UnicodeDecodeError, a ValueError."""
    if isinstance(x, list):
        return list(map(_texts, x))
    return x.decode() if isinstance(x, bytes) else x
