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
READ = 1 << 16  # bytes to read at once; those of larger frames have room of their own
_ROOM = 1 << 20  # bytes at first
_TRUSTED = 16  # times what has come of a frame: as much room is made for what it is said to have
_KEEP_MOST = 1 << 24  # bytes of memory for large frames that are kept for the next one


class Frame(NamedTuple):
    kind: int
    flags: int
    body: memoryview  # read-only


def encode(kind: int, body: bytes | bytearray = b"", flags: int = 0) -> bytes:
    return HEADER.pack(len(body), kind, flags, 0) + body


class Assembler:
    """Cuts a stream of bytes into frames. It holds what has arrived, and little memory for what was only promised."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.compressed_allowed = False  # until both HELLOs offered it
        self.room: memoryview | None = None  # within a large frame: where to read what is next
        self._large = bytearray()  # what room is of, or was
        self._before = bytearray()  # what it was of before that: a frame is often in use while the next one comes
        self._read = 0  # bytes in it
        self._max_frame = max_frame
        self._pending = bytearray()
        self._needed = HEADER.size  # bytes in _pending from which on it is worth looking again

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields the frames that data completes. Frames wholly inside data are views of it, without a copy."""
        if self.room is not None:
            return self._fill(memoryview(data))
        if not self._pending and len(data) >= HEADER.size:
            size, kind, flags, _ = HEADER.unpack_from(data)
            if size == len(data) - HEADER.size and size <= self._max_frame and not flags & _COMPRESSED:
                return iter((Frame(kind, flags, memoryview(data)[HEADER.size :]),))  # as nearly always
        return self._cut(data)

    def _fill(self, data: memoryview) -> Iterator[Frame]:
        while self.room is not None and data:
            count = min(len(self.room), len(data))
            self.room[:count] = data[:count]
            data = data[count:]
            yield from self.filled(count)
        if data:
            yield from self._cut(data)

    def _cut(self, data: bytes | memoryview) -> Iterator[Frame]:
        source: bytes | bytearray | memoryview = data
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
        if at < there and self._needed > READ:
            self._begin(view[at:])
        elif at < there:
            self._pending += view[at:]

    def _begin(self, start: memoryview) -> None:
        """What has come of a large frame is put where the rest is read to, without another copy."""
        self._read = len(start)
        self._large, self._before = self._before, self._large
        size = min(self._needed, max(_ROOM, _TRUSTED * self._read, len(self._large)))
        if size > len(self._large) or not _unused(self._large):
            self._large = bytearray(size)
        room = memoryview(self._large)[:size]
        room[: self._read] = start
        self.room = room[self._read :]

    def filled(self, count: int) -> Iterator[Frame]:
        """Yields the frame that is complete with `count` bytes more in the room."""
        assert self.room is not None
        self._read += count
        if self._read == self._needed:
            self.room, self._needed = None, HEADER.size
            view = memoryview(self._large).toreadonly()
            size, kind, flags, _ = HEADER.unpack_from(view)
            if len(self._large) > _KEEP_MOST:
                self._large = bytearray()
            yield self._open(Frame(kind, flags, view[HEADER.size : HEADER.size + size]))
        elif count == len(self.room):
            self.room = None
            self._begin(memoryview(self._large)[: self._read])
        else:
            self.room = self.room[count:]

    def _open(self, frame: Frame) -> Frame:
        if not frame.flags & _COMPRESSED:
            return frame
        if not self.compressed_allowed:
            raise ProtocolError("frame flags", 5, "the body is compressed, which was not agreed on")
        return frame._replace(body=_decompress(frame.body, self._max_frame))


def _unused(memory: bytearray) -> bool:
    """Whether no view of it is left, such as of an input that a model keeps: its size can be changed only then."""
    try:
        memory.append(0)
    except BufferError:
        return False
    memory.pop()
    return True


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
