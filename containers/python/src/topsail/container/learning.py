"""A model that learns while it serves: its correct and accuracy hooks."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import Any

from ..metrics import Counter, Gauge, Registry
from ..protocol.feedback import Feedback
from .decoding import decode
from .error_log import ErrorLog
from .feedback import FeedbackQueue
from .runner import Runner

_EVERY = 1.0  # seconds between two calls of accuracy


class Learning:
    """Hands feedback to the model, between batches and on the thread that runs it. Whatever the model does with it, the
    container lives on. A model without correct gets none."""

    def __init__(self, runner: Runner, queue: FeedbackQueue, registry: Registry) -> None:
        self._runner = runner
        self._queue = queue
        self._registry = registry
        self._errors = ErrorLog()
        self._dropped = 0  # of the queue's, counted so far
        self._judge = False  # feedback came since the model was last asked for its accuracy
        self._next = 0.0

    def due_in(self) -> float | None:
        """Seconds until there is something to do; None if nothing waits."""
        if not self._queue.empty:
            return 0.0
        return max(0.0, self._next - time.monotonic()) if self._judge else None

    def step(self) -> None:
        """Learns from some feedback of one user, and asks for the accuracy when it is time to."""
        entries = self._queue.take()
        if entries and self._runner.model.correct:
            self._correct(entries)
        if self._judge and time.monotonic() >= self._next:
            self._judge, self._next = False, time.monotonic() + _EVERY
            self._report_accuracy()

    def _correct(self, entries: list[Feedback]) -> None:
        if pairs := [pair for e in entries if (pair := self._pair(e))]:
            try:
                self._runner.model.correct(pairs, entries[0].user)  # type: ignore[misc]
            except Exception as e:
                self._fail(f"correct failed for feedback on {len(pairs)} inputs", e)
        self._judge = self._runner.model.accuracy is not None
        if dropped := self._queue.dropped - self._dropped:
            self._dropped += dropped
            self._count("feedback_dropped", "Feedback that came faster than the model learns.", dropped)

    def _pair(self, entry: Feedback) -> tuple[Any, Any] | None:
        """The input as predict gets it, and the label; None for what is neither."""
        try:
            [label] = entry.label
            return self._runner.read(entry.input), decode(label)
        except Exception as e:  # some of it is the model's own code
            self._fail("feedback cannot be read", e)
            return None

    def _report_accuracy(self) -> None:
        try:
            accuracy = self._runner.model.accuracy()  # type: ignore[misc]
            if accuracy is not None and math.isfinite(accuracy):
                self._registry.get(Gauge, "accuracy", "The model's own account of its accuracy.", {}).set(accuracy)
        except Exception as e:
            self._fail("accuracy failed", e)

    def _fail(self, what: str, e: Exception) -> None:
        self._errors.log(what, e)
        self._count("correct_failures", "Failures of correct, of accuracy, or to read their feedback.", 1)

    def _count(self, name: str, help: str, n: int) -> None:
        with suppress(ValueError):  # the model has a metric of another kind by this name
            self._registry.get(Counter, name, help, {}).inc(n)
