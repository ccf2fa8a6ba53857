"""The whole output of a query, made of the parts that its model yielded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST = 1 << 20  # bytes of parts that are collected


class Whole:
    """Collects parts. Those of a large answer are let go of: an answer may go on for as long as a client listens."""

    def __init__(self, join: Callable[[list[Any]], Any] | None) -> None:
        """`join` is the model's own way to make one output of parts, if it has one."""
        self.count = 0  # of parts
        self.too_large = False
        self._join = join or joined
        self._parts: list[Any] = []
        self._size = 0

    def add(self, part: Any, size: int) -> None:
        """A part that has so many bytes on the wire."""
        self.count += 1
        self._size += size
        if self._size > MOST:
            self.too_large = True
            self._parts.clear()
        else:
            self._parts.append(part)

    def join(self) -> Any:
        return self._join(self._parts)


def joined(parts: list[Any]) -> Any:
    """Texts as one text, which is empty without parts; a single part as it is; else a list of them."""
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    return parts[0] if len(parts) == 1 else list(parts)
