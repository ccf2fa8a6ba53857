"""Texts with a length before them. Text that is too long is cut: it is for people, and a cut beats no answer."""

from __future__ import annotations

from .cursor import U8, U16


def str8(text: str) -> bytes:
    data = clip(text, 0xFF)
    return U8.pack(len(data)) + data


def str16(text: str) -> bytes:
    data = clip(text, 0xFFFF)
    return U16.pack(len(data)) + data


def clip(text: str, most: int) -> bytes:
    """At most `most` bytes of UTF-8, ending between two characters; what UTF-8 cannot say becomes '?'."""
    data = text.encode("utf-8", "replace")
    return data if len(data) <= most else data[:most].decode("utf-8", "ignore").encode()
