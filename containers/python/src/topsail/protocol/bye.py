"""BYE: the last frame, with the reason."""

from __future__ import annotations

from .cursor import U16, Cursor
from .text import str16

encode = str16


def decode(body: memoryview) -> str:
    return Cursor(body).text(U16, "bye reason")
