"""How long to wait before trying again."""

from __future__ import annotations

import random


class Backoff:
    """Doubling waits with some chance in them, so that many containers do not dial in step."""

    def __init__(self, least: float = 0.1, most: float = 5.0) -> None:
        """The bounds are in seconds."""
        self._least, self._most = least, most
        self._wait = least

    def next(self) -> float:
        wait, self._wait = self._wait, min(self._wait * 2, self._most)
        return max(self._least, wait * random.uniform(0.7, 1.0))

    def lived(self, seconds: float) -> None:
        """After a connection that lasted, the next one is worth trying soon; one that was cut at once is not."""
        if seconds >= self._most:
            self._wait = self._least
