"""A reader that walks over a frame's body and checks every length before it uses it."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

from .errors import ProtocolError

U8 = Struct("<B")
U16 = Struct("<H")
U32 = Struct("<I")
U64 = Struct("<Q")
_TAG_AND_SIZE = Struct("<BI")


class Cursor:
    """Reads data[at:end] from left to right. Slices that it hands out are views, not copies."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: memoryview, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    @property
    def left(self) -> int:
        return self.end - self.at

    def fail(self, field: str, problem: str) -> ProtocolError:
        return ProtocolError(field, self.at, problem)

    def unpack(self, struct: Struct, field: str) -> tuple[Any, ...]:
        if struct.size > self.left:
            raise self.fail(field, f"{struct.size} bytes are needed and {self.left} are left")
        values = struct.unpack_from(self.data, self.at)
        self.at += struct.size
        return values

    def number(self, struct: Struct, field: str) -> int:
        value: int = self.unpack(struct, field)[0]
        return value

    def take(self, size: int, field: str) -> memoryview:
        if size > self.left:
            raise self.fail(field, f"{size} bytes are promised and {self.left} are left")
        view = self.data[self.at : self.at + size]
        self.at += size
        return view

    def text(self, length: Struct, field: str) -> str:
        """Reads a str8 or str16, by the struct of its length."""
        size = self.number(length, field)
        start = self.at
        try:
            return str(self.take(size, field), "utf-8")
        except UnicodeDecodeError:
            raise ProtocolError(field, start, "is not UTF-8") from None

    def part(self, field: str) -> Cursor:
        """Reads an entry that begins with the u32 size of its rest, and gives a cursor over that rest."""
        size = self.number(U32, field)
        start = self.at
        self.take(size, field)
        return Cursor(self.data, start, start + size)

    def count(self, field: str, each: int) -> int:
        """Reads the u32 count of things that take at least `each` bytes, so that a lie costs no memory."""
        count = self.number(U32, field)
        if count * each > self.left:
            raise self.fail(field, f"{count} entries are promised and {self.left} bytes are left")
        return count

    def fields(self, where: str) -> Iterator[tuple[int, memoryview]]:
        """Yields (tag, bytes) up to the end. The caller skips tags that it does not know."""
        while self.left:
            tag, size = self.unpack(_TAG_AND_SIZE, f"{where} field")
            yield tag, self.take(size, f"{where} field {tag}")
