"""Asks a model from time to time whether it is well."""

from __future__ import annotations

import time

from .model import Model


class Health:
    """`good` is what the model said last. It is asked between batches, on the thread that runs it."""

    def __init__(self, model: Model, every: float) -> None:
        self.good = True
        self._model = model
        self._asks = model.has_health
        self._every = every
        self._next = time.monotonic() + every

    def due_in(self) -> float | None:
        """Seconds until the model is to be asked; None if it has nothing to say."""
        return max(0.0, self._next - time.monotonic()) if self._asks else None

    def changed(self) -> bool:
        """Asks if it is time to, and says whether the answer is a new one."""
        if not self._asks or time.monotonic() < self._next:
            return False
        before, self.good = self.good, self._model.healthy()
        self._next = time.monotonic() + self._every
        return self.good != before
