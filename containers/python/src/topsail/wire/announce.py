"""ANNOUNCE: what a container serves, and whether it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from .cursor import U8, Cursor
from .field import encode_field
from .text import str8

_COUNT = Struct("<I")
_ENTRY = Struct("<IBBHI")  # id, state, input type, 0, input length
_LEAST = 4 + _ENTRY.size + 3
_PIPELINE = 1


@dataclass(frozen=True)
class Announced:
    id: int
    state: int
    input_type: int
    input_length: int  # elements; 0 = any
    model: str
    version: str
    stage: str = ""
    pipeline: bytes = b""  # with a stage: all stages of the model version, in JSON

    def _encode(self) -> bytes:
        entry = _ENTRY.pack(self.id, self.state, self.input_type, 0, self.input_length)
        entry += str8(self.model) + str8(self.version) + str8(self.stage)
        if self.pipeline:
            entry += encode_field(_PIPELINE, self.pipeline)
        return _COUNT.pack(len(entry)) + entry


def encode(*entries: Announced) -> bytes:
    return _COUNT.pack(len(entries)) + b"".join(e._encode() for e in entries)


def decode(body: memoryview) -> list[Announced]:
    cursor = Cursor(body)
    return [_decode_entry(cursor.part("announce entry")) for _ in range(cursor.count("announce count", _LEAST))]


def _decode_entry(entry: Cursor) -> Announced:
    id, state, input_type, _, input_length = entry.unpack(_ENTRY, "announce entry")
    model = entry.text(U8, "announce model")
    version = entry.text(U8, "announce version")
    stage = entry.text(U8, "announce stage")
    found = {tag: bytes(value) for tag, value in entry.fields("announce")}
    return Announced(id, state, input_type, input_length, model, version, stage, found.get(_PIPELINE, b""))
