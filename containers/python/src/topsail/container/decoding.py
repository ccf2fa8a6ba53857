"""From bytes back to what a model could have returned: the other way of encoding."""

from __future__ import annotations

import json
import sys
from array import array
from typing import Any

from ..protocol.constants import DType
from ..protocol.payload import Value

_TYPECODES = {
    DType.UINT8: "B",
    DType.BOOL: "B",
    DType.INT32: "i",
    DType.INT64: "q",
    DType.FLOAT32: "f",
    DType.FLOAT64: "d",
}


def decode(value: Value) -> Any:
    """A number or truth value, nested lists of them, text, or what JSON says. It raises ValueError for bytes that are
    none of these."""
    if value.dtype in _TYPECODES:
        return numbers(value)
    if value.dtype == DType.OPAQUE:
        raise ValueError("opaque bytes are no number, text or JSON")
    text = str(value.data, "utf-8")
    return json.loads(text) if value.dtype == DType.JSON else text


def numbers(value: Value) -> Any:
    """A scalar, or a tensor as nested lists."""
    flat = array(_TYPECODES[DType(value.dtype)])
    flat.frombytes(value.data)
    if sys.byteorder == "big":
        flat.byteswap()
    listed = [bool(n) for n in flat] if value.dtype == DType.BOOL else flat.tolist()
    return _fold(listed, value.shape)


def _fold(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [_fold(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
