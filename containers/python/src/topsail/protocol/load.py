"""LOAD and UNLOAD: what a host is asked to hold, and no longer to hold."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from .cursor import U8, U32, Cursor
from .errors import ProtocolError
from .field import encode_field
from .text import str8

_ENTRY = Struct("<BBHI")  # input type, 0, 0, input length
_LEAST = 4 + _ENTRY.size + 2
_BUNDLE, _URL, _FOLDER, _BATCH, _SIGNATURE = 1, 2, 3, 4, 6  # 5 is for sidecars


class Load(NamedTuple):
    """A model version. Its digest, its address and how its batches are formed are for sidecars, and the folder, below
    that of all models, is for containers."""

    model: str
    version: str
    input_type: int = 0  # 0: any
    input_length: int = 0  # elements; 0: any
    folder: str = ""
    bundle: str = ""
    url: str = ""
    batch: bytes = b""  # JSON
    signature: str = ""  # JSON; empty: none


def encode(*entries: Load) -> bytes:
    return U32.pack(len(entries)) + b"".join(U32.pack(len(e)) + e for e in map(_encode_entry, entries))


def _encode_entry(load: Load) -> bytes:
    head = _ENTRY.pack(load.input_type, 0, 0, load.input_length) + str8(load.model) + str8(load.version)
    given = (_BUNDLE, load.bundle.encode()), (_URL, load.url.encode()), (_FOLDER, load.folder.encode())
    rest = (_BATCH, load.batch), (_SIGNATURE, load.signature.encode())
    return head + b"".join(encode_field(tag, value) for tag, value in (*given, *rest) if value)


def decode(body: memoryview) -> list[Load]:
    cursor = Cursor(body)
    return [_decode_entry(cursor.part("load entry")) for _ in range(cursor.count("load count", _LEAST))]


def _decode_entry(entry: Cursor) -> Load:
    input_type, _, _, input_length = entry.unpack(_ENTRY, "load entry")
    model = entry.text(U8, "load model")
    version = entry.text(U8, "load version")
    given = {_BUNDLE: "", _URL: "", _FOLDER: "", _SIGNATURE: ""}
    batch = b""
    for tag, value in entry.fields("load"):
        if tag in given:
            try:
                given[tag] = str(value, "utf-8")
            except UnicodeDecodeError:
                raise ProtocolError(f"load field {tag}", entry.at - len(value), "is not UTF-8") from None
        elif tag == _BATCH:
            batch = bytes(value)
    where = given[_FOLDER], given[_BUNDLE], given[_URL]
    return Load(model, version, input_type, input_length, *where, batch, given[_SIGNATURE])


def encode_unload(id: int) -> bytes:
    return U32.pack(id)


def decode_unload(body: memoryview) -> int:
    """The id that the container announced."""
    return Cursor(body).number(U32, "unload id")
