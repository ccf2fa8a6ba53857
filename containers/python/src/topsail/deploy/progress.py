"""Says how far a deployment is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class Progress:
    """Lines on stderr, or in a notebook below the cell. On a terminal what may still change stays on one line."""

    def __init__(self, name: str, wanted: bool | Callable[[str], None]) -> None:
        self._name = name
        self._began = time.monotonic()
        self._last = ""
        self._open = False  # a line on the terminal that will be written over
        self._say = wanted if callable(wanted) else None
        self._silent = wanted is False
        self._out = sys.stdout if "ipykernel" in sys.modules else sys.stderr
        self._overwrites = self._say is None and self._out.isatty()

    def done(self, what: str) -> None:
        """Something is so now."""
        self._write(what, stays=True)

    def now(self, what: str) -> None:
        """Something is going on; said again only when it is something else."""
        if what != self._last:
            self._write(what, stays=not self._overwrites)
        self._last = what

    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def _write(self, what: str, stays: bool) -> None:
        if self._silent:
            return
        line = f"{self._name}: {' '.join(what.split())}"
        if self._say is not None:
            self._say(line)
            return
        if self._overwrites:
            line = "\r\033[K" + (line if stays else line[:100])
        print(line, end="\n" if stays else "", file=self._out, flush=True)
