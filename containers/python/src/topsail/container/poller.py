"""Waiting for a connection or for a wakeup, whichever comes first."""

from __future__ import annotations

import select

from .connection import Connection
from .wakeup import Wakeup


class Poller:
    """For one thread; what it watches must stay open as long. It asks the system without the standard library's
    selectors, which take longer than the wait for a batch that is there."""

    def __init__(self, wakeup: Wakeup, connection: Connection | None = None) -> None:
        self._wakeup = wakeup.fileno()
        self._connection = connection.fileno() if connection else -1
        self._watched = [self._wakeup] + [self._connection] * (connection is not None)
        self._poll = select.poll() if hasattr(select, "poll") else None  # Windows has none
        if self._poll:
            for descriptor in self._watched:
                self._poll.register(descriptor, select.POLLIN)
        self._heard = [(self._connection, select.POLLIN)] if self._poll else []  # what nearly every poll says

    def wait(self, seconds: float) -> tuple[bool, bool]:
        """Whether the connection is readable or has ended, and whether the wakeup was woken; neither when the time is
        over."""
        if self._poll:
            polled = self._poll.poll(seconds * 1000)
            if polled == self._heard:
                return True, False
            ready = [descriptor for descriptor, _ in polled]
        else:
            ready = select.select(self._watched, [], [], seconds)[0]
        return self._connection in ready, self._wakeup in ready
