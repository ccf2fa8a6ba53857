"""ONNX models."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..container.signature import Signature
from ..runtime.failure import PermanentFailure
from ..runtime.onnx import signature_of
from .deployment import Deployment
from .example import read
from .failure import DeployFailed
from .named import is_named, read_named, with_output
from .packing import content, deploy, file, given, scored
from .terms import Terms


def deploy_onnx(
    name: str,
    model_or_path: Any,
    example: Any = None,
    *,
    output: str | None = None,
    device: str = "cpu",
    scores: bool | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys an ONNX model: a path, its bytes, or an object of the package onnx. `output` names one of several.
    `device` is cpu, cuda, or auto. With a dict as the example, or without one, queries have the names, types and shapes
    that the model itself says. A classifier with an output of probabilities answers with its confidence; with
    `scores` also with them, and if that is False with neither."""
    said = Terms.of(terms)
    frozen = file("model.onnx", content(model_or_path), "onnxruntime")
    if is_named(example, input_type):
        shown = read_named(example, input_type, with_output(_signature(frozen.sources["model.onnx"]), output))
    else:
        shown = read(example, input_type, shaped=True)
    options = given(output=output, device=device if device != "cpu" else None) | scored(scores)
    return deploy(name, "onnx", "model.onnx", frozen, shown, shown.length, options, said)


def _signature(model: bytes) -> Signature:
    try:
        session = import_module("onnxruntime").InferenceSession(model, providers=["CPUExecutionProvider"])
        return signature_of(session)
    except PermanentFailure as e:
        raise DeployFailed(str(e)) from None
    except Exception as e:  # onnxruntime has an exception of its own for each of its errors
        raise DeployFailed(f"onnxruntime cannot load the model: {e}") from e
