"""REPLY: what became of the inputs of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from . import frame, payload
from .constants import Flag, Kind, Status
from .cursor import U16, Cursor
from .field import encode_field
from .payload import Value
from .text import str16

_HEAD = Struct("<QIIII")  # batch, queue, wait, service, count
_ENTRY = Struct("<IIBBH")  # size of the rest, index, status, flags, 0
_REST = Struct("<IBBH")  # the same, behind the size
_F64 = Struct("<d")
_LAST = 1
_LEAST = _ENTRY.size
_CONFIDENCE, _QUALIFIERS = 1, 2
_MESSAGE_MOST = 4000  # characters of a message; a whole traceback helps nobody at the gateway


class Reply:
    """Collects the last entries of a batch, ready to be sent as one piece.

    The entries go to several frames where one would be larger than the sidecar accepts.
    """

    def __init__(self, batch: int, max_frame: int) -> None:
        self._batch = batch
        self._room = max_frame - _HEAD.size  # bytes of entries in one frame
        self._used = 0  # of them
        self._data = bytearray()
        self._starts: list[int] = []  # of the frames in _data
        self._counts: list[int] = []  # of the entries in each frame
        self._begin()

    def _begin(self) -> None:
        self._starts.append(len(self._data))
        self._counts.append(0)
        self._used = 0
        self._data += bytes(frame.HEADER.size + _HEAD.size)  # filled in by finish

    def add_output(self, index: int, body: bytes) -> None:
        """Adds an encoded payload with its fields (see output.encode)."""
        size = _ENTRY.size + len(body)
        if size > self._room:
            self.add_failure(index, Status.MODEL_ERROR, f"OverflowError: an output of {len(body)} bytes cannot be sent")
            return
        self._add(size, _ENTRY.pack(size - 4, index, 0, _LAST, 0), body)

    def add_failure(self, index: int, status: int, message: str) -> None:
        text = str16(message[:_MESSAGE_MOST])
        size = _ENTRY.size + len(text)
        self._add(size, _ENTRY.pack(size - 4, index, status, _LAST, 0), text)

    def _add(self, size: int, head: bytes, body: bytes) -> None:
        if self._used + size > self._room:
            self._begin()
        self._used += size
        self._counts[-1] += 1
        self._data += head
        self._data += body

    def finish(self, service: int) -> bytearray:
        """The frames, the last one with END. `service` is the time that the model took, in microseconds."""
        ends = [*self._starts[1:], len(self._data)]
        for start, end, count in zip(self._starts, ends, self._counts, strict=True):
            flags = Flag.END if end == len(self._data) else 0
            size = end - start - frame.HEADER.size
            frame.HEADER.pack_into(self._data, start, size, Kind.REPLY, flags, 0)
            # Nothing waits in a container: the sidecar has the queue, and sends one batch at a time.
            _HEAD.pack_into(self._data, start + frame.HEADER.size, self._batch, 0, 0, service, count)
        return self._data


def encode_fields(confidence: float | None, qualifiers: list[Value]) -> bytes:
    data = b""
    if confidence is not None:
        data += encode_field(_CONFIDENCE, _F64.pack(confidence))
    if qualifiers:
        data += encode_field(_QUALIFIERS, payload.encode(qualifiers))
    return data


@dataclass(frozen=True)
class Entry:
    """One entry as the other side reads it."""

    index: int
    status: int
    last: bool
    values: list[Value] = field(default_factory=list)
    message: str = ""
    confidence: float | None = None
    qualifiers: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Decoded:
    batch: int
    service: int
    entries: list[Entry]


def decode(body: memoryview) -> Decoded:
    """Reads a REPLY. A container never gets one: this is for the test harness."""
    cursor = Cursor(body)
    batch, _, _, service = cursor.unpack(Struct("<QIII"), "reply head")
    count = cursor.count("reply count", _LEAST)
    return Decoded(batch, service, [_decode_entry(cursor.part("reply entry")) for _ in range(count)])


def _decode_entry(cursor: Cursor) -> Entry:
    index, status, flags, _ = cursor.unpack(_REST, "reply entry")
    last = bool(flags & _LAST)
    if status != Status.OK:
        return Entry(index, status, last, message=cursor.text(U16, "reply message"))
    values = payload.decode(cursor)
    found = dict(cursor.fields("reply"))
    confidence = Cursor(found[_CONFIDENCE]).unpack(_F64, "confidence")[0] if _CONFIDENCE in found else None
    qualifiers = payload.decode(Cursor(found[_QUALIFIERS])) if _QUALIFIERS in found else []
    return Entry(index, status, last, values, confidence=confidence, qualifiers=qualifiers)
