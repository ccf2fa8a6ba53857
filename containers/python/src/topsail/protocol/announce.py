"""ANNOUNCE: what a container serves, and whether it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from .cursor import U8, U32, U64, Cursor
from .errors import ProtocolError
from .field import encode_field
from .text import clip, str8

_COUNT = Struct("<I")
_ENTRY = Struct("<IBBHI")  # id, state, input type, 0, input length
_LEAST = 4 + _ENTRY.size + 3
_PIPELINE, _REASON, _MEMORY, _CONCURRENCY = 1, 2, 3, 5
_MOST_REASON = 1024  # bytes


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
    reason: str = ""  # of what is gone: why it could not be loaded
    memory: int = 0  # bytes, of what was loaded on demand or of a host as a whole; 0: unknown
    concurrency: int = 0  # queries that run side by side, or ANY_CONCURRENCY; 0: it takes batches

    def _encode(self) -> bytes:
        entry = _ENTRY.pack(self.id, self.state, self.input_type, 0, self.input_length)
        entry += str8(self.model) + str8(self.version) + str8(self.stage)
        if self.pipeline:
            entry += encode_field(_PIPELINE, self.pipeline)
        if self.reason:
            entry += encode_field(_REASON, clip(self.reason, _MOST_REASON))
        if self.memory:
            entry += encode_field(_MEMORY, U64.pack(self.memory))
        if self.concurrency:
            entry += encode_field(_CONCURRENCY, U32.pack(self.concurrency))
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
    pipeline, reason, memory, concurrency = b"", "", 0, 0
    for tag, value in entry.fields("announce"):
        if tag == _PIPELINE:
            pipeline = bytes(value)
        elif tag == _REASON:
            reason = str(value, "utf-8", "replace")
        elif tag == _MEMORY:
            if len(value) != U64.size:
                raise ProtocolError("announce memory", entry.at - len(value), f"{len(value)} bytes are no u64")
            memory = U64.unpack(value)[0]
        elif tag == _CONCURRENCY:
            if len(value) != U32.size:
                raise ProtocolError("announce concurrency", entry.at - len(value), f"{len(value)} bytes are no u32")
            concurrency = U32.unpack(value)[0]
    return Announced(id, state, input_type, input_length, model, version, stage, pipeline, reason, memory, concurrency)
