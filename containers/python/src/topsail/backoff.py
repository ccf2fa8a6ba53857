"""How long to wait before dialling again."""

from __future__ import annotations

import random

_LEAST, _MOST = 0.1, 5.0  # seconds


class Backoff:
    """Doubling waits with some chance in them, so that many containers do not dial in step."""

    def __init__(self) -> None:
        self._wait = _LEAST

    def next(self) -> float:
        wait, self._wait = self._wait, min(self._wait * 2, _MOST)
        return max(_LEAST, wait * random.uniform(0.7, 1.0))

    def lived(self, seconds: float) -> None:
        """After a connection that lasted, the next one is worth trying soon; one that was cut at once is not."""
        if seconds >= _MOST:
            self._wait = _LEAST
