"""Payloads: lists of named values, in which inputs and outputs travel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from struct import Struct
from typing import NamedTuple

from .constants import ITEM_SIZE, MAX_DIMENSIONS, DType
from .cursor import U16, U32, Cursor
from .errors import ProtocolError

_VALUE = Struct("<BBBB")  # dtype, dimensions, length of the name, 0
_DIMENSIONS = [Struct(f"<{n}I") for n in range(MAX_DIMENSIONS + 1)]
_TEXTS = frozenset((DType.BLOB, DType.STRING, DType.JSON, DType.OPAQUE))  # elements of any length
_LEAST = _VALUE.size + U32.size
_ONE = Struct("<HBBBBI")  # count of values, then a value without a name and dimensions, and the length of its data


class Value(NamedTuple):
    """One value of a payload: a tensor in little-endian row-major bytes, or a text or blob without a shape."""

    dtype: int
    shape: tuple[int, ...]
    data: bytes | bytearray | memoryview
    name: str = ""


def encode(values: Sequence[Value]) -> bytes:
    parts: list[bytes | bytearray | memoryview] = [U16.pack(len(values))]
    for value in values:
        parts += _parts(value)
    return b"".join(parts)  # once: large values are copied here, and nowhere else


def encode_one(dtype: int, data: bytes) -> bytes:
    """The payload of one value without name and dimensions: what encode makes of it, in one step."""
    return _ONE.pack(1, dtype, 0, 0, 0, len(data)) + data


def _parts(value: Value) -> tuple[bytes | bytearray | memoryview, ...]:
    name = value.name.encode()
    if len(name) > 0xFF:
        raise ValueError(f"the name {value.name[:40]!r}... is longer than 255 bytes")
    head = _VALUE.pack(value.dtype, len(value.shape), len(name), 0)
    dimensions = _DIMENSIONS[len(value.shape)].pack(*value.shape)
    return head, name, dimensions, U32.pack(len(value.data)), value.data


def decode(cursor: Cursor) -> list[Value]:
    """Reads a payload; what stands behind it is left to the caller."""
    count = cursor.number(U16, "payload count")
    if count * _LEAST > cursor.left:
        raise cursor.fail("payload count", f"{count} values are promised and {cursor.left} bytes are left")
    return [_decode_value(cursor) for _ in range(count)]


def _decode_value(cursor: Cursor) -> Value:
    start = cursor.at
    dtype, dimensions, name_length, _ = cursor.unpack(_VALUE, "value")
    if dtype not in ITEM_SIZE and dtype not in _TEXTS:
        raise ProtocolError("value dtype", start, f"{dtype} is unknown")
    if dimensions > MAX_DIMENSIONS or (dimensions and dtype in (DType.JSON, DType.OPAQUE)):
        raise ProtocolError("value dimensions", start + 1, f"{dimensions} are too many for dtype {dtype}")
    name = _name(cursor.take(name_length, "value name"), cursor)
    shape = cursor.unpack(_DIMENSIONS[dimensions], "value shape")
    size = cursor.number(U32, "value length")
    if dtype in ITEM_SIZE and size != _tensor_bytes(dtype, shape):
        raise cursor.fail("value length", f"{size} bytes are not those of dtype {dtype} and shape {shape}")
    data = cursor.take(size, "value data")
    if dimensions and dtype in _TEXTS:
        _check_elements(data, shape, cursor)
    return Value(dtype, shape, data, name)


def _check_elements(data: memoryview, shape: tuple[int, ...], cursor: Cursor) -> None:
    """Each element of a tensor of strings or bytes is a u32 length and that many bytes."""
    at, left = 0, prod(shape)
    if left * U32.size > len(data):
        raise cursor.fail("value data", f"{left} elements are promised in {len(data)} bytes")
    for _ in range(left):
        if at + U32.size > len(data):
            raise cursor.fail("value data", "ends before the last element")
        at += U32.size + U32.unpack_from(data, at)[0]
    if at != len(data):
        raise cursor.fail("value data", "does not end with the last element")


def _name(data: memoryview, cursor: Cursor) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise cursor.fail("value name", "is not UTF-8") from None


def _tensor_bytes(dtype: int, shape: tuple[int, ...]) -> int:
    size = ITEM_SIZE[dtype]
    for dimension in shape:
        size *= dimension
    return size
