"""What a host is asked to hold and to let go, on its way from the link's thread to the one that loads."""

from __future__ import annotations

from queue import SimpleQueue
from typing import NamedTuple

from .connection import Connection
from .wire.load import Load

_MOST = 4096  # that wait; a sidecar asks for one at a time


class Lost(NamedTuple):
    """The connection has ended: nobody will ask for what was loaded on it."""


class Unload(NamedTuple):
    id: int


class Order(NamedTuple):
    """It remembers its connection, on which it is answered."""

    asked: Load | Unload | Lost
    connection: Connection


class TooMany(Exception):
    """More was ordered at once than there can be use for."""


class Orders:
    """Orders in the sequence in which they came."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Order | None] = SimpleQueue()

    def put(self, asked: Load | Unload | Lost, connection: Connection) -> None:
        """It raises TooMany."""
        if self._waiting.qsize() >= _MOST and not isinstance(asked, Lost):
            raise TooMany
        self._waiting.put(Order(asked, connection))

    def close(self) -> None:
        """Makes take return None behind those that wait."""
        self._waiting.put(None)

    def take(self) -> Order | None:
        """The next one, when there is one; None once they are closed."""
        return self._waiting.get()
