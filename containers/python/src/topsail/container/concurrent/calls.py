"""The queries that a sidecar has sent and that are not answered yet."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...protocol.cancel import ALL, Cancel
from ...protocol.errors import ProtocolError
from ..batch import Batch, Full
from ..connection import Connection
from .call import Call
from .exchange import Exchange
from .runner import ConcurrentRunner

_MOST = 65536  # batches, where the sidecar finds how many run
_CROSSING = 4  # more than are allowed, which may come while the ends of others are on their way


class Calls:
    """Starts them as they come. The thread that reads the connection calls start, cancel and disconnected."""

    def __init__(
        self,
        runner: ConcurrentRunner,
        model: int,
        on_idle: Callable[[], None],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        """`model` is the id that is announced. `on_idle` is called whenever none is left, after `watch`."""
        self._runner = runner
        self._model = model
        self._on_idle = on_idle
        self._on_fatal = on_fatal
        self._most = min(runner.concurrency, _MOST) + _CROSSING
        self._lock = threading.Lock()  # guards the following
        self._open: dict[tuple[Connection, int], list[Call]] = {}  # by connection and batch
        self._watched = False

    @property
    def idle(self) -> bool:
        return not self._open

    def watch(self) -> None:
        """From now on on_idle is called."""
        self._watched = True

    def start(self, batch: Batch) -> None:
        """It raises Full or ProtocolError."""
        if batch.predict.model != self._model:
            batch.refuse_unknown()
            return
        key = (batch.connection, batch.predict.batch)
        exchange = Exchange(batch, self._runner.send, lambda: self._end(key), self._on_fatal)
        calls = [
            self._runner.call(input, batch.received, answer)
            for input, answer in zip(batch.predict.inputs, exchange.answers(), strict=True)
        ]
        with self._lock:
            if key in self._open:
                raise ProtocolError("predict batch", 0, f"{batch.predict.batch} is not answered yet")
            if len(self._open) >= self._most:
                raise Full
            self._open[key] = calls
        for call in calls:
            self._runner.start(call)

    def cancel(self, connection: Connection, cancel: Cancel) -> None:
        """What is not there was answered meanwhile."""
        with self._lock:
            calls = self._open.get((connection, cancel.batch), [])
        for index, call in enumerate(calls):
            if cancel.index in (index, ALL):
                self._runner.cancel(call)

    def disconnected(self, connection: Connection) -> None:
        """Cancels all of a connection that has ended: no one waits for their answers."""
        with self._lock:
            found = [call for (of, _), calls in self._open.items() if of is connection for call in calls]
        for call in found:
            self._runner.cancel(call)

    def _end(self, key: tuple[Connection, int]) -> None:
        with self._lock:
            del self._open[key]
        if self._watched and self.idle:
            self._on_idle()
