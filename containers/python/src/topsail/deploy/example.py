"""An example of an input: what type of inputs the model takes, and something to try it on."""

from __future__ import annotations

import base64
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..container.signature import Signature
from .failure import DeployFailed
from .terms import api_input_type

_OF_DTYPE = {"float16": "floats", "bfloat16": "floats", "float32": "floats", "float64": "doubles"}


@dataclass(frozen=True)
class Example:
    value: Any  # as JSON: a list of numbers, a text, bytes as base64, or a dict of named values; None if there is none
    input_type: str  # by the API's name
    shape: tuple[int, ...] = ()  # of what was given, where that had more than one dimension
    signature: Signature | None = None  # of a model whose inputs have names

    @property
    def length(self) -> int:
        """Elements, 0 for text and where there is no example."""
        return len(self.value) if isinstance(self.value, list) else 0


def read(given: Any, input_type: str | None = None, shaped: bool = False) -> Example:
    """The example that was given, for an app of the type that was named, else of the type that fits it.

    `shaped`: an input of several dimensions is fine, and travels flat. It raises DeployFailed.
    """
    if given is None:
        if input_type is None:
            raise DeployFailed("what inputs does the model take? Give an example=, or input_type=")
        return Example(None, api_input_type(input_type))
    if isinstance(given, str):
        return _of("strings", input_type, given)
    if isinstance(given, (bytes, bytearray, memoryview)):
        if not given:
            raise DeployFailed("the example is empty")
        return _of("bytes", input_type, base64.b64encode(given).decode())
    values, shape = _numbers(given)
    if len(shape) > 1 and not shaped:
        raise DeployFailed(
            f"the example has {len(shape)} dimensions, {'x'.join(map(str, shape))}: an example is one input, "
            "as X[0] where X has a row for each"
        )
    found = _type(given, values)
    return _of(found, input_type, values, shape if len(shape) > 1 else ())


def _of(found: str, wanted: str | None, value: Any, shape: tuple[int, ...] = ()) -> Example:
    kind = found if wanted is None else api_input_type(wanted)
    numeric = {"integers", "floats", "doubles"}
    if kind != found and not {kind, found} <= numeric:
        raise DeployFailed(f"the example is one of {found}, and input_type is {wanted!r}: make them agree")
    if kind == "integers":
        _check_integers(value)
    return Example(value, kind, shape)


def _numbers(given: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The numbers of an input, flat, and its shape."""
    if hasattr(given, "tolist"):
        nested, shape = given.tolist(), tuple(getattr(given, "shape", ()))
    elif isinstance(given, (Sequence, array)):
        nested, shape = list(given), ()
    elif isinstance(given, Mapping):
        raise DeployFailed(
            "the example is a dict, and this model takes one vector or text: give the values in their order, or deploy "
            "a function of such dicts with deploy_python_function"
        )
    else:
        raise DeployFailed(f"the example is a {type(given).__name__}: give one input, as a list or array of numbers")
    values = [int(v) if isinstance(v, bool) else v for v in _flat(nested)]  # a vector has numbers
    if not values:
        raise DeployFailed("the example is empty")
    if wrong := [v for v in values if not isinstance(v, (int, float))]:
        raise DeployFailed(f"the example has a {type(wrong[0]).__name__} among its numbers: {wrong[0]!r}")
    if not all(map(math.isfinite, values)):
        raise DeployFailed("the example has NaN or infinity, which JSON cannot carry")
    return values, shape or _shape(nested)


def _flat(nested: Any) -> list[Any]:
    if not isinstance(nested, (list, tuple)):
        raise DeployFailed(f"the example is the single value {nested!r}: an input is a list, as [{nested!r}]")
    inner = [x.tolist() if hasattr(x, "tolist") else x for x in nested]
    if any(isinstance(x, (list, tuple)) for x in inner):
        return [value for x in inner for value in _flat(x)]
    return inner


def _shape(nested: Any) -> tuple[int, ...]:
    first = nested[0] if isinstance(nested, (list, tuple)) and nested else None
    inner = _shape(first) if isinstance(first, (list, tuple)) else ()
    return (len(nested), *inner)


def _type(given: Any, values: list[Any]) -> str:
    """By what it is made of: an array says its type, and a list is of integers if all its values are."""
    dtype = str(getattr(given, "dtype", "")).removeprefix("torch.")
    if dtype in _OF_DTYPE:
        return _OF_DTYPE[dtype]
    if isinstance(given, array) and given.typecode == "f":
        return "floats"
    return "integers" if all(isinstance(v, int) for v in values) else "doubles"


def _check_integers(values: Any) -> None:
    if wrong := [v for v in values if v != int(v) or not -(1 << 31) <= v < 1 << 31]:
        raise DeployFailed(f"{wrong[0]!r} in the example does not fit into 32 bits: use input_type='doubles'")
