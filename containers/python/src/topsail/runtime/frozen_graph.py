"""A frozen graph of TensorFlow: a GraphDef in which the weights are constants, as TensorFlow 1 saved models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .failure import PermanentFailure
from .folder import Folder

_NO_OUTPUT = frozenset({"Placeholder", "Const", "NoOp", "Assert"})
_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})


class FrozenGraph:
    """It is used as a SavedModel with one signature, whose inputs and outputs are tensors of the graph."""

    def __init__(self, tf: Any, path: Path, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
        """`inputs` and `outputs` are names of tensors, such as x:0, by the names that they get; without, all that the
        graph says. It raises PermanentFailure."""
        graph = _graph(tf, path)
        if not inputs:
            inputs, outputs = _ends(graph)
        wrapped = tf.compat.v1.wrap_function(lambda: tf.compat.v1.import_graph_def(graph, name=""), [])
        feeds = {name: _tensor(wrapped.graph, tensor) for name, tensor in inputs.items()}
        fetches = {name: _tensor(wrapped.graph, tensor) for name, tensor in outputs.items()}
        try:
            function = wrapped.prune(list(feeds.values()), list(fetches.values()))
        except Exception as e:  # TensorFlow has a class of its own for this, in a module that is not public
            raise PermanentFailure(
                f"the outputs {', '.join(outputs)} need other inputs than those named: {e}"
            ) from None
        self.signatures = {"serving_default": _Function(tf, function, feeds, fetches)}


def named(folder: Folder) -> tuple[dict[str, str], dict[str, str]] | None:
    """The options `inputs` and `outputs` of a frozen graph, which is a file: objects in JSON, of names of tensors by
    the names that they get; empty where there is neither. None for a SavedModel. It raises PermanentFailure."""
    if not folder.option("inputs", ""):
        return None if folder.entry().is_dir() else ({}, {})
    return _names(folder, "inputs"), _names(folder, "outputs")


def _names(folder: Folder, option: str) -> dict[str, str]:
    text = folder.option(option, "")
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, dict) or not names or not all(isinstance(x, str) for x in names.values()):
        raise PermanentFailure(f"the option {option} = {text!r} must name tensors, as an object in JSON")
    return names


class _Function:
    """What of a function of a SavedModel the runtime uses."""

    def __init__(self, tf: Any, function: Any, feeds: Mapping[str, Any], fetches: Mapping[str, Any]) -> None:
        self._function, self._outputs = function, list(fetches)
        self._inputs = list(feeds)
        self.structured_input_signature = ((), {n: tf.TensorSpec(t.shape, t.dtype, n) for n, t in feeds.items()})
        self.structured_outputs = {n: tf.TensorSpec(t.shape, t.dtype, n) for n, t in fetches.items()}

    def __call__(self, **tensors: Any) -> dict[str, Any]:
        return dict(zip(self._outputs, self._function(*(tensors[name] for name in self._inputs)), strict=True))


def _graph(tf: Any, path: Path) -> Any:
    graph = tf.compat.v1.GraphDef()
    try:
        graph.ParseFromString(path.read_bytes())
    except Exception as e:  # protobuf has several classes of errors, by its version
        raise PermanentFailure(
            f"TensorFlow {tf.__version__} cannot load {path.name} as a frozen graph: {e}. "
            "Of a SavedModel give the folder"
        ) from e
    if not graph.node:
        raise PermanentFailure(f"{path.name} is no frozen graph: it has no operations")
    if variables := [node.name for node in graph.node if node.op in _VARIABLES]:
        raise PermanentFailure(
            f"{path.name} is not frozen: it has the variable {variables[0]!r}, and only its name. Freeze it with "
            "convert_variables_to_constants_v2, or save a SavedModel"
        )
    return graph


def _ends(graph: Any) -> tuple[dict[str, str], dict[str, str]]:
    """What is fed to a graph, and what no operation of it takes any more. It raises PermanentFailure."""
    taken = {name.lstrip("^").partition(":")[0] for node in graph.node for name in node.input}
    inputs = {node.name: f"{node.name}:0" for node in graph.node if node.op == "Placeholder"}
    outputs = {n.name: f"{n.name}:0" for n in graph.node if n.name not in taken and n.op not in _NO_OUTPUT}
    if not inputs or not outputs:
        raise PermanentFailure("the graph does not say what its inputs and outputs are: name them in these two options")
    return inputs, outputs


def _tensor(graph: Any, name: str) -> Any:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError) as e:
        raise PermanentFailure(f"the graph has no tensor {name!r}: {e}") from None
