"""The control socket of a worker: a pair, whose ends the worker and its supervisor hold as long as they live.

worker -> supervisor    lines: "ready", "failed WHY", "gone WHY"
supervisor -> worker    a byte: finish what is on its way, and end
its end, to the worker  the supervisor is gone
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

READY, FAILED, GONE = "ready", "failed", "gone"
_MOST = 4000  # characters of a reason


class ControlSocket:
    """The worker's end."""

    def __init__(self, descriptor: int) -> None:
        """It raises OSError where there is no such socket."""
        self._sock = socket.socket(fileno=descriptor)
        self._sock.set_inheritable(False)  # what the worker starts is nothing to its supervisor

    def watch(self, finish: Callable[[], None]) -> None:
        """Calls finish when the supervisor says so, from another thread, and ends the process if the supervisor is
        gone."""
        threading.Thread(target=self._watch, args=(finish,), name="topsail-control", daemon=True).start()

    def _watch(self, finish: Callable[[], None]) -> None:
        with suppress(OSError):
            while self._sock.recv(1):
                finish()
        os._exit(1)  # no supervisor is left to wait for, and the model may be in the middle of anything

    def say(self, word: str, why: str = "") -> None:
        line = " ".join((word, *why[:_MOST].split()))
        with suppress(OSError):
            self._sock.sendall(line.encode("utf-8", "replace") + b"\n")
