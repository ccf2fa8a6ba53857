"""How long a call may take."""

from __future__ import annotations

import time


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds, never below 0."""
        return max(0.0, self._end - time.monotonic())

    def limit(self) -> float:
        """Seconds for one wait; when there are none it raises TimeoutError, as the wait would."""
        if left := self.left():
            return left
        raise TimeoutError
