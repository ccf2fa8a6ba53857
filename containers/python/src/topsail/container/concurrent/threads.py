"""Threads that run queries, one each."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..error_log import ErrorLog
from .call import Call

MOST = 64  # threads, unless the model says how many
_HANGS = 60.0  # seconds after which a query that was cancelled and still runs has hung


class Threads:
    """At most so many, and only those that are needed. Queries wait for one in the order in which they came."""

    def __init__(self, predict: Callable[..., Any], most: int, errors: ErrorLog) -> None:
        self._predict = predict
        self._most = most
        self._errors = errors
        self._changed = threading.Condition()  # guards the following
        self._waiting: deque[Call] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._running: set[Call] = set()
        self._closed = False

    def start(self, call: Call) -> None:
        with self._changed:
            self._waiting.append(call)
            if len(self._waiting) > self._idle and len(self._threads) < self._most:
                name = f"topsail-predict-{len(self._threads) + 1}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
            else:
                self._changed.notify()

    def cancel(self, call: Call) -> None:
        """A query that waits is dropped. One that runs is answered, and its generator closed when it next yields: a
        thread cannot be stopped from outside. Where all threads have hung, what waits for them is not answered, by
        which the sidecar learns that the container has to be restarted."""
        with self._changed:
            if call in self._waiting:
                if self._hang():
                    return
                self._waiting.remove(call)
        call.cancel()

    def _hang(self) -> bool:
        since = time.monotonic() - _HANGS
        return len(self._running) == self._most and all(c.ended and c.ended_at < since for c in self._running)

    def close(self, patience: float) -> None:
        """Ends the threads, those that run something when that has ended. It waits some seconds for them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        until = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        while call := self._next():
            self._run(call)
            with self._changed:
                self._running.discard(call)
            del call  # which holds its input

    def _next(self) -> Call | None:
        """The next query, when there is one; None at the end."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._idle -= 1
            if not self._waiting:
                return None
            call = self._waiting.popleft()
            self._running.add(call)
            return call

    def _run(self, call: Call) -> None:
        if not (arguments := call.begin()):
            return
        x, keywords = arguments
        try:
            result = self._predict(x, **keywords)
            if isinstance(result, Iterator):
                call.finish_parts(self._pass_on(result, call))
            else:
                call.finish(result)
        except BaseException as e:  # what ends the process is for the main thread to see
            call.raised(e)

    def _pass_on(self, parts: Iterator[Any], call: Call) -> Any:
        """Sends all parts, or those up to where the query is cancelled; and what a generator returned."""
        try:
            while True:
                try:
                    part = next(parts)
                except StopIteration as e:
                    return e.value
                if not call.add(part):
                    return None
        finally:
            self._close(parts)

    def _close(self, parts: Iterator[Any]) -> None:
        """Lets a generator know that no more is wanted of it, if it has not come to its end."""
        try:
            if close := getattr(parts, "close", None):
                close()
        except Exception as e:
            self._errors.log("a generator failed while it was closed", e)
