"""CANCEL: an answer is not wanted any more."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from .cursor import Cursor

ALL = 0xFFFFFFFF  # in the place of an index: all inputs of the batch

_CANCEL = Struct("<QI")  # batch, index


@dataclass(frozen=True)
class Cancel:
    batch: int
    index: int  # of an input in the batch, or ALL


def encode(cancel: Cancel) -> bytes:
    return _CANCEL.pack(cancel.batch, cancel.index)


def decode(body: memoryview) -> Cancel:
    return Cancel(*Cursor(body).unpack(_CANCEL, "cancel"))
