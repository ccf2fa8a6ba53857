"""HELLO: the first frame of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from .constants import MAGIC, MAX_FRAME, MIN_MAX_FRAME, MINOR
from .cursor import Cursor
from .field import encode_field

_HEAD = Struct("<4sBBHQI")  # magic, minor version, role, 0, features, max frame
_NAME, _TOKEN, _SOFTWARE = 1, 2, 3


@dataclass(frozen=True)
class Hello:
    role: int
    features: int = 0
    max_frame: int = MAX_FRAME
    name: str = ""
    token: bytes = b""
    software: str = ""
    minor: int = MINOR

    def encode(self) -> bytes:
        head = _HEAD.pack(MAGIC, self.minor, self.role, 0, self.features, self.max_frame)
        texts = ((_NAME, self.name.encode()), (_TOKEN, self.token), (_SOFTWARE, self.software.encode()))
        return head + b"".join(encode_field(tag, text) for tag, text in texts if text)


def decode(body: memoryview) -> Hello:
    cursor = Cursor(body)
    magic, minor, role, _, features, max_frame = cursor.unpack(_HEAD, "hello")
    if magic != MAGIC:
        raise Cursor(body).fail("hello magic", f"{magic!r} is not {MAGIC!r}: the other side is no Topsail sidecar")
    if max_frame < MIN_MAX_FRAME:
        raise Cursor(body, 16).fail("hello max frame", f"{max_frame} is less than {MIN_MAX_FRAME}")
    found = {tag: bytes(value) for tag, value in cursor.fields("hello")}
    return Hello(
        role=role,
        features=features,
        max_frame=max_frame,
        name=found.get(_NAME, b"").decode("utf-8", "replace"),
        token=found.get(_TOKEN, b""),
        software=found.get(_SOFTWARE, b"").decode("utf-8", "replace"),
        minor=minor,
    )
