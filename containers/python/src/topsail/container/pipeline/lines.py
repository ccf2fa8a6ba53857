"""What a worker writes, line by line and with its name before each line."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

_MOST = 8 << 10  # bytes of a line that are kept
_PATIENCE = 1.0  # seconds that a reader may take to make room


class Lines:
    """Passes each line of a stream of bytes on, as a whole. It holds no more than one line of bounded length."""

    def __init__(self, prefix: str, emit: Callable[[bytes], None]) -> None:
        self._prefix = prefix.encode()
        self._emit = emit
        self._kept = bytearray()
        self._cut = 0  # bytes of this line that were not kept

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._add(part)
            self._end()
        self._add(rest)

    def finish(self) -> None:
        """Ends a last line that has no line break."""
        if self._kept:
            self._end()

    def _add(self, part: bytes) -> None:
        room = _MOST - len(self._kept)
        self._kept += part[:room]
        self._cut += max(0, len(part) - room)

    def _end(self) -> None:
        cut = f" [{self._cut} bytes cut]".encode() if self._cut else b""
        self._emit(self._prefix + self._kept.removesuffix(b"\r") + cut + b"\n")
        self._kept.clear()
        self._cut = 0


def written_to(descriptor: int) -> Callable[[bytes], None]:
    """Writes to a descriptor; what is not read is lost."""

    def write(data: bytes) -> None:
        try:
            while data:
                data = data[_write(descriptor, data) :]
        except OSError:
            pass  # its reader is gone; the workers serve on

    return write


def _write(descriptor: int, data: bytes) -> int:
    """Writes some of it, also where another process has made the descriptor non-blocking."""
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        select.select([], [descriptor], [], _PATIENCE)
        return os.write(descriptor, data)
