"""What Triton's Python backend offers a model as the module triton_python_backend_utils, as far as it works without
Triton: tensors in memory, requests and responses. A call of another model does not."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ..optional import numpy

_log = logging.getLogger("triton")


class TritonModelException(Exception):
    """What a model may raise for a request."""


class TritonError:
    """Why a request failed."""

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = range(8)

    def __init__(self, message: str, code: int = INTERNAL) -> None:
        self._message = message

    def message(self) -> str:
        return self._message


class Tensor:
    """A named array. Texts are bytes in an array of objects."""

    def __init__(self, name: str, array: Any) -> None:
        self._name, self._array = name, numpy.asarray(array)

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> Any:
        return self._array

    def is_cpu(self) -> bool:
        return True

    def to_dlpack(self) -> Any:
        return self._array.__dlpack__()

    @classmethod
    def from_dlpack(cls, name: str, tensor: Any) -> Tensor:
        return cls(name, numpy.from_dlpack(tensor))


class InferenceRequest:
    """A query, with a batch of one where the model takes batches."""

    def __init__(
        self, inputs: Sequence[Tensor] = (), requested_output_names: Sequence[str] = (), **_options: Any
    ) -> None:
        self._inputs, self._outputs = list(inputs), list(requested_output_names)

    def inputs(self) -> list[Tensor]:
        return self._inputs

    def requested_output_names(self) -> list[str]:
        return self._outputs

    def request_id(self) -> str:
        return ""

    def parameters(self) -> str:
        return "{}"

    def exec(self, *_arguments: Any, **_options: Any) -> Any:
        raise TritonModelException("a model calls another one, which Topsail does not do: make both stages of an app")

    async_exec = exec


class InferenceResponse:
    def __init__(self, output_tensors: Sequence[Tensor] = (), error: TritonError | None = None) -> None:
        self._outputs, self._error = list(output_tensors), error

    def output_tensors(self) -> list[Tensor]:
        return self._outputs

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> TritonError | None:
        return self._error


class Logger:
    """Writes to the log of the replica."""

    INFO, WARNING, ERROR, VERBOSE = logging.INFO, logging.WARNING, logging.ERROR, logging.DEBUG
    log_info, log_warn, log_error, log_verbose = map(staticmethod, (_log.info, _log.warning, _log.error, _log.debug))

    @staticmethod
    def log(message: str, level: int = logging.INFO) -> None:
        _log.log(level, message)


def get_input_tensor_by_name(request: InferenceRequest, name: str) -> Tensor | None:
    return next((t for t in request.inputs() if t.name() == name), None)


def get_input_config_by_name(model_config: Mapping[str, Any] | str, name: str) -> dict[str, Any] | None:
    return _by_name(model_config, "input", name)


def get_output_config_by_name(model_config: Mapping[str, Any] | str, name: str) -> dict[str, Any] | None:
    return _by_name(model_config, "output", name)


def _by_name(model_config: Mapping[str, Any] | str, kind: str, name: str) -> dict[str, Any] | None:
    config = json.loads(model_config) if isinstance(model_config, str) else model_config
    return next((t for t in config[kind] if t["name"] == name), None)


def using_decoupled_model_transaction_policy(_model_config: Mapping[str, Any]) -> bool:
    return False


def triton_string_to_numpy(name: str) -> Any:
    """The type of arrays by Triton's name of it. numpy has no bfloat16: it comes as float32."""
    kind = name.removeprefix("TYPE_")
    if kind in ("STRING", "BYTES"):
        return numpy.object_
    if kind == "BOOL":
        return numpy.bool_
    names = {"FP16": "float16", "FP32": "float32", "FP64": "float64", "BF16": "float32"}
    return numpy.dtype(names.get(kind, kind.lower())).type
