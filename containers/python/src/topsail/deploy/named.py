"""Examples with names: the inputs of a signature, and its outputs from what a model makes of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import zip_longest
from typing import Any

from ..client.errors import BadRequest
from ..container import stacking
from ..container.input_type import TENSORS
from ..container.signature import NUMBERS, Signature, Tensor, flat
from ..output import BadInput, Output, Scored
from .example import Example, read
from .failure import DeployFailed

_KINDS = {"bool": (bool,), "int64": (int,), "float64": (float, int), "string": (str,), "bytes": (bytes, bytearray)}


def categories_of(given: Any) -> dict[str, list[Any]]:
    """The categories of the columns of a DataFrame that are of pandas' type for that."""
    found = dict(given.dtypes.items()) if hasattr(given, "columns") else {}
    return {str(name): dtype.categories.tolist() for name, dtype in found.items() if hasattr(dtype, "categories")}


def check_categories(shown: Mapping[str, list[Any]], trained: list[list[Any]]) -> None:
    """Whether columns still have the categories of the training, `trained` where the model knows them: a frame that was
    made of one row has only that row's. It raises DeployFailed."""
    for (name, values), known in zip_longest(shown.items(), trained if len(trained) == len(shown) else []):
        if len(values) < 2 or (known is not None and list(known) != values):
            raise DeployFailed(
                f"the column {name!r} of the example has the categories {_some(values)}, and not those that the model "
                f"was trained on{'' if known is None else ', ' + _some(known)}: take the row from the training table, "
                "as X.iloc[:1], where the column has all of them"
            )


def _some(values: list[Any]) -> str:
    return ", ".join(map(repr, values[:5])) + (", …" if len(values) > 5 else "") if values else "none"


def by_name(given: Any, categories: Collection[str] = ()) -> Any:
    """A row of pandas, a DataFrame or a Series with names, as a dict; else what was given. Columns may be of
    `categories`. It raises DeployFailed."""
    if not hasattr(given, "iloc"):
        return given
    if not hasattr(given, "columns"):
        texts = all(isinstance(name, str) for name in given.index)
        return dict(zip(given.index, given.to_numpy(), strict=True)) if texts else given
    if len(given) != 1:
        raise DeployFailed(f"the example has {len(given)} rows: give one, as X.iloc[:1]")
    if not given.columns.is_unique or not all(isinstance(name, str) for name in given.columns):
        raise DeployFailed("the columns of the example must have names that are texts, and each its own")
    for name, dtype in given.dtypes.items():
        if name not in categories and (dtype.kind not in "biufO" or str(dtype) == "category"):
            raise DeployFailed(f"the column {name!r} is of type {dtype}: make it numbers, truth values or texts")
    return {name: given[name].to_numpy()[0] for name in given.columns}


def sent(given: Any, inputs: Sequence[Mapping[str, Any]]) -> Any:
    """An input as a query has it, of the `inputs` of an app: a dict, or a row of pandas, which may have made numbers of
    one type of it and may have categories. It raises BadRequest for texts that are bytes, and the reverse."""
    names = {str(name) for name in given.columns} if hasattr(given, "columns") else ()
    named = by_name(given, names)
    if not isinstance(named, Mapping):
        return named
    types = {t["name"]: str(t["type"]) for t in inputs}
    return {name: _sent(name, x, types.get(name, "")) for name, x in named.items()}


def _sent(name: str, x: Any, kind: str) -> Any:
    if kind == "string" and isinstance(x, (bytes, bytearray, memoryview)):
        raise BadRequest(f"{name} is a text, and the input is bytes: decode them, as input.decode()")
    if kind == "bytes" and isinstance(x, str):
        raise BadRequest(f"{name} is bytes, and the input is a text: encode it, as input.encode()")
    whole = kind.startswith(("int", "uint")) and isinstance(x, float) and x.is_integer()  # numpy's float64 is one
    return int(x) if whole else x


def frame_of(given: Any, named: Mapping[str, Any]) -> Any:
    """A DataFrame of one row: what was given, or one with the names and values of a row."""
    return given if hasattr(given, "columns") else import_module("pandas").DataFrame([dict(named)])


def reading(shown: Example, categories: Collection[str] = ()) -> Callable[[Any], Any]:
    """What makes other inputs, rows of a DataFrame among them, what JSON has, as the example was made that."""

    def of_named(row: Any) -> Any:
        return read_named(by_name(row, categories), None, shown.signature).value

    def of_vector(row: Any) -> Any:
        return read(row.to_numpy()[0] if hasattr(row, "iloc") else row, shown.input_type, shaped=True).value

    return of_named if shown.signature else of_vector


def is_named(example: Any, input_type: str | None) -> bool:
    """Whether a model that knows its own names is asked by them."""
    return input_type in (None, TENSORS.name) and (example is None or isinstance(example, Mapping))


def read_named(given: Mapping[str, Any] | None, input_type: str | None, signature: Signature | None = None) -> Example:
    """The example of a model with named inputs: those of the signature, else as the example has them. It raises
    DeployFailed."""
    if input_type not in (None, TENSORS.name):
        raise DeployFailed(f"inputs with names are tensors, and input_type is {input_type!r}: leave it out")
    signature = signature or Signature(tuple(tensor(str(name), x) for name, x in (given or {}).items()))
    if not signature.inputs:
        raise DeployFailed("the example is an empty dict: name the inputs, each with a value")
    try:
        signature.check()
        value = None if given is None else {t.name: _plain(given[t.name]) for t in signature.inputs if t.name in given}
        if given is not None:
            signature.example(given)
            json.dumps(value, allow_nan=False)
    except BadInput as e:
        raise DeployFailed(f"{e}: the model takes {', '.join(f'{t.name} {t}' for t in signature.inputs)}") from None
    except (TypeError, ValueError) as e:
        raise DeployFailed(f"the example cannot be an input: {e}") from None
    return Example(value, TENSORS.name, signature=signature)


def with_output(signature: Signature, output: str | None) -> Signature:
    """The same with the output of this name alone. It raises DeployFailed where there is none."""
    chosen = tuple(t for t in signature.outputs if output in (None, t.name))
    if signature.outputs and not chosen:
        have = ", ".join(t.name for t in signature.outputs)
        raise DeployFailed(f"the model has no output {output!r}: it has {have}")
    return replace(signature, outputs=chosen)


def tensor(name: str, x: Any) -> Tensor:
    """The input or output that has this value."""
    dtype = str(getattr(x, "dtype", "")).removeprefix("torch.")
    if dtype in NUMBERS:
        return Tensor(name, dtype, tuple(x.shape))
    try:
        shape, elements = flat(x)
    except ValueError:  # lists of several lengths
        return Tensor(name, "json")
    for kind, types in _KINDS.items():
        if elements and all(type(e) in types for e in elements):
            return Tensor(name, kind, shape)
    return Tensor(name, "json")


def with_outputs(
    shown: Example, given: Mapping[str, Any], answer: Callable[[Any], Any], any_length: bool = False
) -> Example:
    """The same with the outputs that `answer` gives for the example. They stay open where it fails, which the trial
    then reports. `any_length`: they may be longer or shorter for other inputs."""
    signature = shown.signature or Signature()
    try:
        output = answer(signature.read(signature.example(given)))
    except Exception:
        return shown
    output = output.value if isinstance(output, (Output, Scored)) else output
    if isinstance(output, Exception):  # that of this input
        return shown
    named = output if isinstance(output, Mapping) else {"output": output}
    outputs = [tensor(str(name), x) for name, x in named.items()]
    if any_length:
        outputs = [replace(t, shape=(-1,) * len(t.shape)) for t in outputs]
    return replace(shown, signature=replace(signature, outputs=tuple(outputs)))


def alone(predict: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a function of stacked inputs says to one."""
    return lambda x: stacking.call(predict, [x])[0]


def _plain(x: Any) -> Any:
    """A value as JSON has it, where bytes are base64."""
    if hasattr(x, "tolist"):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return [_plain(e) for e in x]
    return base64.b64encode(x).decode() if isinstance(x, (bytes, bytearray, memoryview)) else x
