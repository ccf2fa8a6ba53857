"""SavedModels and frozen graphs of TensorFlow."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..container.signature import Signature
from ..runtime.failure import PermanentFailure
from ..runtime.frozen_graph import FrozenGraph
from ..runtime.tensorflow import signature_of
from .deployment import Deployment
from .example import read
from .failure import DeployFailed
from .named import is_named, read_named, tensor, with_output
from .packing import deploy, file, files_of, given, said_scores
from .terms import Terms

Names = str | Iterable[str] | Mapping[str, str]  # of tensors


def deploy_tensorflow(
    name: str,
    model_or_path: Any,
    example: Any = None,
    *,
    signature: str | None = None,
    output: str | None = None,
    inputs: Names | None = None,
    outputs: Names | None = None,
    device: str = "cpu",
    scores: str | None = None,
    classes: Iterable[Any] | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a model of TensorFlow: the folder of a SavedModel, a model of Keras, or a tf.Module with signatures.
    `signature` is serving_default without; `output` names one of several. `device` is cpu, cuda, or auto. With a dict
    as the example, or without one, queries have the names, types and shapes that the signature itself says.

    A frozen graph is a file .pb, of which `inputs` and `outputs` name tensors, such as ["x:0"], or {"image": "x:0"} to
    give them other names.

    `scores` says that the output is of classes: "softmax" for logits, or "probabilities"; `classes` are their names.
    """
    said = Terms.of(terms)
    options = given(signature=signature, output=output, device=device if device != "cpu" else None)
    options |= said_scores(scores, classes) | _graph_options(model_or_path, inputs, outputs)
    with _stored(model_or_path, options) as (entry, path):
        sources = files_of(path, "model/") if path.is_dir() else {entry: path.read_bytes()}
        frozen = replace(file("", b"", "tensorflow"), sources=sources)
        if is_named(example, input_type):
            own = with_output(_signature(path, options), output)
            shown = read_named(example, input_type, _with_bytes(own, example))
        else:
            shown = read(example, input_type, shaped=True)
    if shown.shape:
        options["shape"] = ",".join(map(str, shown.shape))
    return deploy(name, "tensorflow", entry, frozen, shown, shown.length, options, said)


def _graph_options(model: Any, inputs: Names | None, outputs: Names | None) -> dict[str, str]:
    """The tensors of a frozen graph. It raises DeployFailed where they are not named, and for other models."""
    is_graph = isinstance(model, (str, os.PathLike)) and Path(model).is_file()
    if not is_graph and (inputs is not None or outputs is not None):
        raise DeployFailed(
            "inputs and outputs name the tensors of a frozen graph, a file: a SavedModel has a signature"
        )
    if not is_graph:
        return {}
    if not inputs or not outputs:
        raise DeployFailed(
            f"{os.fspath(model)!r} is a file, as a frozen graph is: name its tensors with inputs= and outputs=; "
            "of a SavedModel give the folder"
        )
    return {"inputs": _tensors(inputs), "outputs": _tensors(outputs)}


def _tensors(names: Names) -> str:
    """Tensors by the names that queries have for them: those that are given, else the names of their operations."""
    if not isinstance(names, Mapping):
        names = {tensor.removesuffix(":0"): tensor for tensor in ([names] if isinstance(names, str) else names)}
    return json.dumps(dict(names))


@contextmanager
def _stored(model: Any, options: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The entry of a bundle, and where the model is: a file, or a folder."""
    if "inputs" in options:
        yield "model.pb", Path(model)
        return
    with _saved_model(model) as folder:
        yield "model", folder


@contextmanager
def _saved_model(model: Any) -> Iterator[Path]:
    """The folder of a SavedModel."""
    with tempfile.TemporaryDirectory(prefix="topsail-") as made:
        folder = Path(model) if isinstance(model, (str, os.PathLike)) else Path(made, "model")
        if hasattr(model, "export"):
            model.export(str(folder), verbose=False)
        elif (tf := sys.modules.get("tensorflow")) and isinstance(model, tf.Module):
            tf.saved_model.save(model, str(folder))
        if not (folder / "saved_model.pb").is_file():
            raise DeployFailed(f"{model!r} is no SavedModel: give its folder, a model of Keras, or a tf.Module")
        yield folder


def _signature(path: Path, options: Mapping[str, str]) -> Signature:
    tf = import_module("tensorflow")
    try:
        if "inputs" in options:
            graph = FrozenGraph(tf, path, json.loads(options["inputs"]), json.loads(options["outputs"]))
            return signature_of(graph, "serving_default")
        return signature_of(tf.saved_model.load(str(path)), options.get("signature", "serving_default"))
    except PermanentFailure as e:
        raise DeployFailed(str(e)) from None


def _with_bytes(signature: Signature, example: Mapping[str, Any] | None) -> Signature:
    """TensorFlow has one type for texts and bytes: bytes are what the example has as such."""
    blobs = {name for name, x in (example or {}).items() if tensor(name, x).type == "bytes"}
    inputs = (replace(t, type="bytes") if t.type == "string" and t.name in blobs else t for t in signature.inputs)
    return replace(signature, inputs=tuple(inputs))
