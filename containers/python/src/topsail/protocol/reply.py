"""REPLY: what became of the inputs of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

from . import payload
from .constants import Flag, Kind, Status
from .cursor import U16, U32, Cursor
from .field import encode_field
from .payload import Value
from .text import str16

_HEAD = Struct("<QIIII")  # batch, queue, wait, service, count
_FRAME = Struct("<IBBHQIIII")  # a frame's header and that, in one
_ENTRY = Struct("<IIBBH")  # size of the rest, index, status, flags, 0
_REST = Struct("<IBBH")  # the same, behind the size
_F64 = Struct("<d")
_LAST = 1
_LEAST = _ENTRY.size
_CONFIDENCE, _QUALIFIERS = 1, 2
_MESSAGE_MOST = 4000  # characters of a message; the gateway has no use for a whole traceback


class Reply:
    """Collects the last entries of a batch, ready to be sent as one piece.

    The entries go to several frames where one would be larger than the sidecar accepts.
    """

    def __init__(self, batch: int, max_frame: int) -> None:
        self._batch = batch
        self._room = max_frame - _HEAD.size  # bytes of entries in one frame
        self._full: list[list[bytes]] = []  # frames that hold what they can, as their entries
        self._entries: list[bytes] = []  # of the last frame
        self._used = 0  # bytes of them

    def add_output(self, index: int, body: bytes) -> None:
        """Adds an encoded payload with its fields (see output.encode)."""
        size = _ENTRY.size + len(body)
        if size > self._room:
            self.add_failure(index, Status.MODEL_ERROR, f"OverflowError: an output of {len(body)} bytes cannot be sent")
            return
        self._add(_ENTRY.pack(size - 4, index, 0, _LAST, 0) + body)

    def add_failure(self, index: int, status: int, message: str) -> None:
        text = str16(message[:_MESSAGE_MOST])
        self._add(_ENTRY.pack(_ENTRY.size + len(text) - 4, index, status, _LAST, 0) + text)

    def _add(self, entry: bytes) -> None:
        if self._used + len(entry) > self._room:
            self._full.append(self._entries)
            self._entries, self._used = [], 0
        self._entries.append(entry)
        self._used += len(entry)

    def finish(self, service: int, end: bool = True) -> bytes:
        """The frames, the last one with END unless other inputs of the batch are not answered yet. `service` is the
        time that the model took, in microseconds."""
        parts: list[bytes] = []
        for entries in self._full:
            parts += (self._head(entries, 0, service), *entries)
        flags = Flag.END if end else 0
        return b"".join((*parts, self._head(self._entries, flags, service), *self._entries))

    def _head(self, entries: list[bytes], flags: int, service: int) -> bytes:
        size = _HEAD.size + sum(map(len, entries))
        # Nothing waits in a container: the sidecar has the queue, and sends one batch at a time.
        return _FRAME.pack(size, Kind.REPLY, flags, 0, self._batch, 0, 0, service, len(entries))


def encode_part(batch: int, index: int, body: bytes, max_frame: int) -> bytes:
    """The frame of one part of an answer: an encoded payload with its fields, behind which more entries follow. It
    raises OverflowError for one that is larger than the sidecar accepts."""
    size = _ENTRY.size + len(body)
    if _HEAD.size + size > max_frame:
        raise OverflowError(f"a part of {len(body)} bytes cannot be sent")
    head = _FRAME.pack(_HEAD.size + size, Kind.REPLY, 0, 0, batch, 0, 0, 0, 1)
    return head + _ENTRY.pack(size - 4, index, 0, 0, 0) + body


class OneQualifier:
    """Encodes the fields of outputs that have one qualifier each, of the same name and type: what encode_fields makes,
    in one step."""

    def __init__(self, name: str, dtype: int) -> None:
        self._head = payload.encode([Value(dtype, (), b"", name)])[: -U32.size]
        self._alone = Struct(f"<BI{len(self._head)}sI")
        self._sure = Struct(f"<BIdBI{len(self._head)}sI")

    def encode(self, confidence: float | None, data: bytes) -> bytes:
        size, head = len(data), self._head
        rest = len(head) + U32.size + size
        if confidence is None:
            return self._alone.pack(_QUALIFIERS, rest, head, size) + data
        return self._sure.pack(_CONFIDENCE, _F64.size, confidence, _QUALIFIERS, rest, head, size) + data


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
