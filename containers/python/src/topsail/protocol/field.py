"""Fields: the tagged bytes that leave room for growth."""

from __future__ import annotations

from struct import Struct

_HEAD = Struct("<BI")


def encode_field(tag: int, value: bytes) -> bytes:
    return _HEAD.pack(tag, len(value)) + value
