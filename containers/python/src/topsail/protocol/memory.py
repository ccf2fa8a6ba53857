"""MEMORY, SHARED and FREE: large frames in memory that a sidecar shares."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from .cursor import U16, U32, Cursor

_MEMORY = Struct("<II")  # slots, size of one
_SHARED = Struct("<BBHII")  # kind, flags, 0, slot, size of the body
_MOST = 1 << 32  # bytes of a memory that this side opens
_PAGE = 1 << 16  # bytes: no system has larger ones


class Memory(NamedTuple):
    slots: int
    size: int  # bytes of each
    path: str  # where it is opened
    link: str  # what the path is a link to


class Shared(NamedTuple):
    kind: int
    flags: int
    slot: int
    size: int


def decode(body: memoryview) -> Memory:
    c = Cursor(body)
    slots, size = c.unpack(_MEMORY, "memory slots")
    if not 1 <= slots * size <= _MOST or size % _PAGE:
        raise c.fail("memory size", f"{slots} slots of {size} bytes are no memory")
    return Memory(slots, size, c.text(U16, "memory path"), c.text(U16, "memory link"))


def decode_shared(body: memoryview) -> Shared:
    kind, flags, _, slot, size = Cursor(body).unpack(_SHARED, "shared frame")
    return Shared(kind, flags, slot, size)


def encode_free(slots: Iterable[int]) -> bytes:
    return b"".join(map(U32.pack, slots))
