"""Frames: a header of 8 bytes and a body."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ..optional import lz4_block
from .constants import MAX_FRAME, Flag
from .cursor import U32
from .errors import ProtocolError

HEADER = Struct("<IBBH")  # size of the body, kind, flags, 0
_COMPRESSED = int(Flag.COMPRESSED)  # a plain number: the bits of an IntFlag are slow to test
_LZ4_RATIO = 255  # no LZ4 block grows by more than this, so a larger raw size is a lie
_READ_LEAST = 1 << 16
_READ_MOST = 1 << 20


class Frame(NamedTuple):
    kind: int
    flags: int
    body: memoryview  # read-only


def encode(kind: int, body: bytes | bytearray = b"", flags: int = 0) -> bytes:
    return HEADER.pack(len(body), kind, flags, 0) + body


class Assembler:
    """Cuts a stream of bytes into frames. It holds what has arrived and never memory for what was only promised."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.compressed_allowed = False  # until both HELLOs offered it
        self._max_frame = max_frame
        self._pending = bytearray()
        self._needed = HEADER.size  # bytes in _pending from which on it is worth looking again

    def wants(self) -> int:
        """How many bytes to read at once: little when idle, more inside a large frame, bounded always."""
        return min(max(self._needed - len(self._pending), _READ_LEAST), _READ_MOST)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields the frames that data completes. Frames wholly inside data are views of it, without a copy."""
        if not self._pending and len(data) >= HEADER.size:
            size, kind, flags, _ = HEADER.unpack_from(data)
            if size == len(data) - HEADER.size and size <= self._max_frame and not flags & _COMPRESSED:
                return iter((Frame(kind, flags, memoryview(data)[HEADER.size :]),))  # as nearly always
        return self._cut(data)

    def _cut(self, data: bytes) -> Iterator[Frame]:
        source: bytes | bytearray = data
        if self._pending:
            self._pending += data
            if len(self._pending) < self._needed:
                return
            source, self._pending = self._pending, bytearray()
        view = memoryview(source).toreadonly()
        at, there = 0, len(view)
        while (start := at + HEADER.size) <= there:
            size, kind, flags, _ = HEADER.unpack_from(view, at)
            if size > self._max_frame:
                raise ProtocolError("frame size", 0, f"{size} bytes are more than the {self._max_frame} allowed")
            end = start + size
            if end > there:
                break
            yield self._open(Frame(kind, flags, view[start:end]))
            at = end
        else:
            end = start
        self._needed = end - at
        if at < there:
            self._pending += view[at:]

    def _open(self, frame: Frame) -> Frame:
        if not frame.flags & _COMPRESSED:
            return frame
        if not self.compressed_allowed:
            raise ProtocolError("frame flags", 5, "the body is compressed, which was not agreed on")
        return frame._replace(body=_decompress(frame.body, self._max_frame))


def _decompress(body: memoryview, max_frame: int) -> memoryview:
    if len(body) < U32.size:
        raise ProtocolError("raw size", 0, f"4 bytes are needed and {len(body)} are left")
    raw_size = U32.unpack_from(body)[0]
    if raw_size > max_frame or raw_size > len(body) * _LZ4_RATIO:
        raise ProtocolError("raw size", 0, f"{raw_size} bytes are too many for {len(body)} compressed ones")
    try:
        raw: bytes = lz4_block.decompress(body[U32.size :], uncompressed_size=raw_size)
    except Exception as e:  # the module raises LZ4BlockError, ValueError and others, all for bad bytes
        raise ProtocolError("compressed body", U32.size, str(e)) from None
    if len(raw) != raw_size:
        raise ProtocolError("compressed body", U32.size, f"{len(raw)} bytes came out instead of {raw_size}")
    return memoryview(raw)
