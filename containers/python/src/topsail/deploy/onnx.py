"""ONNX models."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..container.signature import Signature
from ..runtime.failure import PermanentFailure
from ..runtime.matrix import fixed_size
from ..runtime.onnx import first_dimension, signature_of
from .compared import Ask, compared
from .deployment import Deployment
from .example import read
from .failure import DeployFailed
from .named import is_named, read_named, reading, with_output
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
    if shown.shape:
        options["shape"] = ",".join(map(str, shown.shape))
    table = None if example is None else [example]
    comparison = compared(said.check, table, _session(frozen.sources["model.onnx"], output), reading(shown))
    return deploy(name, "onnx", "model.onnx", frozen, shown, shown.length, options, said, comparison)


def _session(model: bytes, output: str | None) -> Ask:
    """The model as it is, which takes arrays of its own types alone, one row after another."""

    def ask(table: Any) -> list[Any]:
        session = import_module("onnxruntime").InferenceSession(model, providers=["CPUExecutionProvider"])
        first = output or session.get_outputs()[0].name
        size = fixed_size((i.name, first_dimension(i.shape)) for i in session.get_inputs()) or 1
        [name] = [i.name for i in session.get_inputs()]
        stack = import_module("numpy").stack
        return [session.run([first], {name: stack([row] * size)})[0][0] for row in table]

    return ask


def _signature(model: bytes) -> Signature:
    try:
        session = import_module("onnxruntime").InferenceSession(model, providers=["CPUExecutionProvider"])
        return signature_of(session)
    except PermanentFailure as e:
        raise DeployFailed(str(e)) from None
    except Exception as e:  # onnxruntime has an exception of its own for each of its errors
        raise DeployFailed(f"onnxruntime cannot load the model: {e}") from e
