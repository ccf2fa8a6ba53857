"""Wakes a thread that waits for a socket."""

from __future__ import annotations

import socket
from contextlib import suppress


class Wakeup:
    """A pair of sockets. What is written to one end makes the other readable for a selector.

    `descriptor` is for signal.set_wakeup_fd, which writes the number of a signal at once, even while the main thread is
    inside of a long computation that lets no Python code run there.
    """

    def __init__(self) -> None:
        self._out, self._in = socket.socketpair()
        self._out.setblocking(False)
        self._in.setblocking(False)  # neither a signal handler nor the main thread may block here

    def fileno(self) -> int:
        return self._out.fileno()

    @property
    def descriptor(self) -> int:
        return self._in.fileno()

    def wake(self) -> None:
        with suppress(BlockingIOError):  # enough is waiting to be read
            self._in.send(b"\0")

    def read(self) -> bytes:
        """The numbers of signals that came, and zeros, which only wake."""
        try:
            return self._out.recv(4096)
        except BlockingIOError:
            return b""
