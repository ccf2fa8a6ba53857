"""What a host is asked to load and unload, on its way from the link's thread to the one that loads."""

from __future__ import annotations

from queue import SimpleQueue
from typing import NamedTuple

from ..protocol.load import Load
from .connection import Connection

_MOST = 4096  # that wait; a sidecar asks for one at a time


class Disconnected(NamedTuple):
    """The connection has ended: no request will come for what was loaded on it."""


class Unload(NamedTuple):
    id: int


class Request(NamedTuple):
    """It remembers its connection, on which it is answered."""

    asked: Load | Unload | Disconnected
    connection: Connection


class QueueFull(Exception):
    """More was asked for at once than there can be use for."""


class RequestQueue:
    """Requests in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Request | None] = SimpleQueue()

    def put(self, asked: Load | Unload | Disconnected, connection: Connection) -> None:
        """It raises QueueFull."""
        if self._waiting.qsize() >= _MOST and not isinstance(asked, Disconnected):
            raise QueueFull
        self._waiting.put(Request(asked, connection))

    def close(self) -> None:
        """Makes take return None behind those that wait."""
        self._waiting.put(None)

    def take(self) -> Request | None:
        """The next one, when there is one; None once they are closed."""
        return self._waiting.get()
