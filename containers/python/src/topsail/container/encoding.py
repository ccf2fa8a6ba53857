"""From what a model returns for one input to bytes.

| Python                                    | on the wire                                             |
|-------------------------------------------|---------------------------------------------------------|
| bool, int, float                          | a scalar: bool, int64, float64                          |
| numpy scalar, numpy array, array.array    | a scalar or tensor of its own type, small ints widened  |
| str                                       | text; the gateway nests it as JSON if it is valid JSON  |
| None, dict, list, tuple                   | JSON                                                    |
| Output                                    | its value, with confidence and qualifiers               |
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable
from struct import Struct, error
from typing import Any

from ..optional import numpy
from ..output import Output, Scored
from ..protocol import payload
from ..protocol.constants import MAX_DIMENSIONS, DType
from ..protocol.payload import Value
from ..protocol.reply import encode_fields

_QUALIFIED = (Output, Scored)

# Most outputs are one unnamed scalar or text. What stands before its data is always the same.
_INT_HEAD = payload.encode_one(DType.INT64, bytes(8))[:-8]
_FLOAT_HEAD = payload.encode_one(DType.FLOAT64, bytes(8))[:-8]
_BOOL_HEAD = payload.encode_one(DType.BOOL, bytes(1))[:-1]
_INT64 = Struct("<q")
_FLOAT64 = Struct("<d")


def encode(output: Any) -> bytes:
    """The payload and the fields of a reply's entry. It raises TypeError, ValueError or OverflowError, with advice,
    for what cannot be sent."""
    if type(output) not in _QUALIFIED:
        return _payload(output)
    value, fields = value_and_fields(output)
    return _payload(value) + fields


def value_and_fields(output: Any) -> tuple[Any, bytes]:
    """The value of an output, and its encoded fields."""
    if type(output) is Scored:
        return output.value, output.fields
    if type(output) is not Output:
        return output, b""
    confidence = None if output.confidence is None else float(output.confidence)
    qualifiers = [_value(v, str(name)) for name, v in (output.qualifiers or {}).items()]
    return output.value, encode_fields(confidence, qualifiers)


def _payload(x: Any) -> bytes:
    quick = _QUICK.get(type(x))
    return quick(x) if quick else payload.encode([_value(x)])


def _int(x: int) -> bytes:
    return _INT_HEAD + _int64(x)


def _float(x: float) -> bytes:
    return _FLOAT_HEAD + _FLOAT64.pack(x)


def _bool(x: bool) -> bytes:
    return _BOOL_HEAD + _byte(x)


def _str(x: str) -> bytes:
    return payload.encode_one(DType.STRING, x.encode())


def _int64(x: int) -> bytes:
    try:
        return _INT64.pack(x)
    except error:
        raise OverflowError(f"{x} is more than an int64 holds: return it as a float or as text") from None


def _byte(x: bool) -> bytes:
    return b"\x01" if x else b"\x00"


_QUICK: dict[type, Callable[[Any], bytes]] = {int: _int, float: _float, bool: _bool, str: _str}
if numpy is not None:
    _QUICK |= {numpy.int64: _int, numpy.float64: _float}


def _value(x: Any, name: str = "") -> Value:
    """Any output as a value: the way for all that _QUICK does not know."""
    if isinstance(x, bool):
        return Value(DType.BOOL, (), _byte(x), name)
    if isinstance(x, int):
        return Value(DType.INT64, (), _int64(x), name)
    if isinstance(x, float):
        return Value(DType.FLOAT64, (), _FLOAT64.pack(x), name)
    if isinstance(x, str):
        return Value(DType.STRING, (), x.encode(), name)
    if isinstance(x, bytes | bytearray | memoryview):
        raise TypeError("bytes cannot be an output: return text (base64, say), or a numpy array of uint8")
    if isinstance(x, array):
        return _from_array(x, name)
    if numpy is not None and hasattr(type(x), "__array__"):  # torch tensors and pandas columns have it too
        return _from_numpy(numpy.asanyarray(x), name)
    return Value(DType.JSON, (), plain_json(x), name)


_ARRAY_DTYPES = {"B": DType.UINT8, "i": DType.INT32, "q": DType.INT64, "f": DType.FLOAT32, "d": DType.FLOAT64}


def _from_array(x: array[Any], name: str) -> Value:
    if x.typecode == "l":  # 4 or 8 bytes, by platform
        x = array("q", x)
    if x.typecode not in _ARRAY_DTYPES:
        raise TypeError(f"an array of typecode {x.typecode!r} cannot be an output: use one of B, i, q, f, d")
    if sys.byteorder == "big":
        x = x[:]
        x.byteswap()
    return Value(_ARRAY_DTYPES[x.typecode], (len(x),), x.tobytes(), name)


# numpy's kind and item size, to the type on the wire and numpy's name of it.
_NUMPY_DTYPES = {
    ("b", 1): (DType.BOOL, "?"),
    ("u", 1): (DType.UINT8, "u1"),
    ("i", 1): (DType.INT32, "<i4"),
    ("i", 2): (DType.INT32, "<i4"),
    ("u", 2): (DType.INT32, "<i4"),
    ("i", 4): (DType.INT32, "<i4"),
    ("u", 4): (DType.INT64, "<i8"),
    ("i", 8): (DType.INT64, "<i8"),
    ("u", 8): (DType.INT64, "<i8"),
    ("f", 2): (DType.FLOAT32, "<f4"),
    ("f", 4): (DType.FLOAT32, "<f4"),
    ("f", 8): (DType.FLOAT64, "<f8"),
    ("f", 16): (DType.FLOAT64, "<f8"),
}


def _from_numpy(x: Any, name: str) -> Value:
    if isinstance(x, numpy.ma.MaskedArray) and x.mask.any():  # what is masked is not there
        return Value(DType.JSON, (), plain_json(x.tolist()), name)
    if x.dtype.kind in "USO":  # texts and mixed objects: JSON says them
        return Value(DType.JSON, (), plain_json(x.tolist()), name)
    if (x.dtype.kind, x.dtype.itemsize) not in _NUMPY_DTYPES:
        raise TypeError(f"an array of {x.dtype} cannot be an output: use .astype with a number type, or text")
    if x.ndim > MAX_DIMENSIONS:
        raise ValueError(f"an output of {x.ndim} dimensions cannot be sent: at most {MAX_DIMENSIONS} can")
    if x.dtype.kind == "u" and x.dtype.itemsize == 8 and x.size and int(x.max()) >= 1 << 63:
        raise OverflowError(f"{int(x.max())} is more than an int64 holds: return float64 or text")
    dtype, wire = _NUMPY_DTYPES[x.dtype.kind, x.dtype.itemsize]
    return Value(dtype, x.shape, x.astype(wire, copy=False).tobytes(), name)  # tobytes is row-major always


def plain_json(x: Any) -> bytes:
    """An output as JSON. NaN goes out as a float, for the gateway to judge, but not inside of JSON: its spelling would
    spoil the whole."""
    try:
        return json.dumps(x, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()
    except RecursionError:
        raise ValueError("the output is nested too deeply or contains itself") from None


def _plain(x: Any) -> Any:
    """numpy values inside of dicts and lists."""
    if hasattr(x, "tolist"):
        return x.tolist()
    raise TypeError(f"a {type(x).__name__} cannot be an output: return a number, text, an array, or what JSON can say")
