"""PREDICT: a batch of inputs for one model."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from . import payload
from .constants import ITEM_SIZE, MAX_INPUTS, NO_DEADLINE, DType
from .cursor import U32, U64, Cursor
from .errors import ProtocolError
from .payload import Value

_HEAD = Struct("<QII")  # batch, model id, count
# The start of nearly every entry, which has one unnamed vector, text or blob: size, time left, count of values, dtype,
# dimensions, length of the name, 0; then the dimension and the length of the data, or the length and some of the data.
# It is read in one step, because this is the hot path; what does not fit is read again, slowly, by the cursor.
_QUICK = Struct("<IIHBBBBII")
_BLOBS = frozenset(map(int, (DType.STRING, DType.JSON, DType.OPAQUE)))
_LEAST = 4 + 4 + 2
_FEATURES = 4  # the field with the bits of an input
_PARTS = 1  # among them: the answer is wanted in parts


class Input(NamedTuple):
    left: int  # microseconds, or NO_DEADLINE
    values: list[Value]  # one, unless a pipeline asks or the model has a signature
    fields: memoryview | bytes = b""  # what stands behind the payload: user, context and more


class Predict(NamedTuple):
    batch: int
    model: int
    inputs: list[Input]


def encode(batch: int, model: int, inputs: Sequence[Input]) -> bytes:
    parts = [_HEAD.pack(batch, model, len(inputs))]
    for left, values, fields in inputs:
        entry = U32.pack(left) + payload.encode(values) + fields
        parts += (U32.pack(len(entry)), entry)
    return b"".join(parts)


def decode(body: memoryview) -> Predict:
    """Reads a batch. The data of its values, and the fields behind a payload, which stay unread, are views of body."""
    at, end = _HEAD.size, len(body)
    if at > end:
        raise Cursor(body).fail("predict head", f"{at} bytes are needed and {end} are left")
    batch, model, count = _HEAD.unpack_from(body)
    if not 1 <= count <= MAX_INPUTS or count * _LEAST > end - at:
        raise Cursor(body, 12).fail("predict count", f"{count} inputs cannot be in {end - at} bytes")
    inputs = []
    for _ in range(count):
        if entry := _quick(body, at, end):
            at, left, value, fields = entry
            inputs.append(Input(left, [value], fields))
        else:
            part = Cursor(body, at).part("predict entry")
            at = part.end
            left, values = part.number(U32, "predict time left"), payload.decode(part)
            inputs.append(Input(left, values, body[part.at : part.end]))
    return Predict(batch, model, inputs)


def _quick(body: memoryview, at: int, end: int) -> tuple[int, int, Value, memoryview] | None:
    """Where the next entry begins, the time left, the value, and the fields; or None for an entry of another form."""
    start = at + _QUICK.size
    if start > end:
        return None
    size, left, values, dtype, dims, name, _, first, second = _QUICK.unpack_from(body, at)
    after = at + 4 + size
    if values != 1 or name or after > end:
        return None
    if dims == 1 and dtype in ITEM_SIZE and second == first * ITEM_SIZE[dtype]:
        stop = start + second
        return (after, left, Value(dtype, (first,), body[start:stop]), body[stop:after]) if stop <= after else None
    if dims == 0 and dtype in _BLOBS:
        stop = start - 4 + first
        return (after, left, Value(dtype, (), body[start - 4 : stop]), body[stop:after]) if stop <= after else None
    return None


def takes_parts(fields: memoryview | bytes) -> bool:
    """Whether the fields of an input ask for its answer in parts. It raises ProtocolError."""
    for tag, value in Cursor(memoryview(fields)).fields("predict"):
        if tag == _FEATURES:
            if len(value) != U64.size:
                raise ProtocolError("predict features", 0, f"{len(value)} bytes are no u64")
            return bool(U64.unpack(value)[0] & _PARTS)
    return False


def deadline(left: int, now: float) -> float:
    """When an input that came at `now` (monotonic seconds) is too late."""
    return float("inf") if left == NO_DEADLINE else now + left / 1e6
