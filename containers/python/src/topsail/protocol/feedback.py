"""FEEDBACK: labelled inputs for one model."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from . import payload
from .cursor import U32, Cursor
from .errors import ProtocolError
from .field import encode_field
from .payload import Value

_HEAD = Struct("<II")  # model id, count
_LEAST = 4 + 2 + 2
_USER = 1


class Feedback(NamedTuple):
    input: list[Value]
    label: list[Value]
    user: str = ""


def encode(model: int, entries: Iterable[Feedback]) -> bytes:
    parts = [_encode_entry(e) for e in entries]
    return _HEAD.pack(model, len(parts)) + b"".join(U32.pack(len(p)) + p for p in parts)


def _encode_entry(entry: Feedback) -> bytes:
    user = encode_field(_USER, entry.user.encode()) if entry.user else b""
    return payload.encode(entry.input) + payload.encode(entry.label) + user


def decode(body: memoryview) -> tuple[int, list[Feedback]]:
    """The model id and the entries. Their values' data are views of body."""
    cursor = Cursor(body)
    model = cursor.number(U32, "feedback model")
    count = cursor.count("feedback count", _LEAST)
    return model, [_decode_entry(cursor.part("feedback entry")) for _ in range(count)]


def _decode_entry(entry: Cursor) -> Feedback:
    given = payload.decode(entry)
    label = payload.decode(entry)
    user = ""
    for tag, value in entry.fields("feedback"):
        if tag == _USER:
            try:
                user = str(value, "utf-8")
            except UnicodeDecodeError:
                raise ProtocolError("feedback user", entry.at - len(value), "is not UTF-8") from None
    return Feedback(given, label, user)
