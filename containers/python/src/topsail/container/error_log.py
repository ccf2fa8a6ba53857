"""Tracebacks on stderr, few enough to be read."""

from __future__ import annotations

import logging
import time

_log = logging.getLogger("topsail")


class ErrorLog:
    """Logs one traceback in a while and counts the rest: a broken model fails thousands of times a second."""

    def __init__(self, every: float = 10.0) -> None:
        self._every = every
        self._next = 0.0
        self._hidden = 0

    def log(self, what: str, e: BaseException) -> None:
        now = time.monotonic()
        if now < self._next:
            self._hidden += 1
            return
        more = f" ({self._hidden} more like this were not shown)" if self._hidden else ""
        self._next, self._hidden = now + self._every, 0
        _log.error("%s%s", what, more, exc_info=e)
