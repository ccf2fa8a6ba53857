"""What the tasks of an event loop have to send at the same moment, as one piece."""

from __future__ import annotations

from collections.abc import Callable

from ..connection import Connection


class Outbox:
    """A model that computes a step for many queries at once has a part for each, and one write is enough for all. It is
    used on one thread."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._frames: dict[Connection, list[bytes]] = {}

    def send(self, connection: Connection, data: bytes) -> None:
        if not self._frames:
            self._call_soon(self._flush)
        self._frames.setdefault(connection, []).append(data)

    def _flush(self) -> None:
        frames, self._frames = self._frames, {}
        for connection, parts in frames.items():
            connection.send(b"".join(parts))
