"""Lines of what comes in pieces."""

from __future__ import annotations

from collections import deque

MOST_LINE = 64 << 20  # bytes


class Lines:
    def __init__(self) -> None:
        self._whole: deque[bytes] = deque()
        self._rest: list[bytes] = []  # of a line that has not ended
        self._size = 0  # bytes of it

    def feed(self, data: bytes, last: bool) -> None:
        """What comes last also ends the last line. A line beyond a bound is cut."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._end(line)
        if rest:
            self._rest.append(rest)
            self._size += len(rest)
        if self._size > MOST_LINE or (last and self._size):
            self._end(b"")

    def next(self) -> bytes | None:
        """The next whole line without its end."""
        return self._whole.popleft() if self._whole else None

    def _end(self, line: bytes) -> None:
        if self._rest:
            line = b"".join([*self._rest, line])
            self._rest, self._size = [], 0
        self._whole.append(line.rstrip(b"\r"))
