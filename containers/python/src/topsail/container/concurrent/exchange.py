"""A PREDICT of a connection, and the frames that answer it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...protocol import predict, reply
from ...protocol.constants import Status
from ...protocol.reply import Reply
from ..batch import Batch
from ..connection import Connection
from ..runner import micros

Send = Callable[[Connection, bytes], object]


class Exchange:
    """Ends with the last entry of its last input."""

    def __init__(self, batch: Batch, send: Send, on_end: Callable[[], None], on_fatal: Callable[[BaseException], None]):
        self.batch = batch
        self.on_fatal = on_fatal
        self._send = send
        self._on_end = on_end
        self._lock = threading.Lock()  # guards _open, and keeps entries before the frame with END
        self._open = len(batch.predict.inputs)

    def answers(self) -> list[SentAnswer]:
        """One for each input."""
        return [
            SentAnswer(self, index, predict.takes_parts(i.fields)) for index, i in enumerate(self.batch.predict.inputs)
        ]

    def part(self, index: int, body: bytes) -> None:
        """It raises OverflowError."""
        connection = self.batch.connection
        self._send(connection, reply.encode_part(self.batch.predict.batch, index, body, connection.max_frame))

    def last(self, add: Callable[[Reply], None], took: float) -> None:
        """Sends the last entry of an input."""
        connection = self.batch.connection
        entry = Reply(self.batch.predict.batch, connection.max_frame)
        add(entry)
        with self._lock:
            self._open -= 1
            if not self._open:
                self._on_end()  # first: the sidecar may send the next query at once
            self._send(connection, entry.finish(micros(took), end=not self._open))


class SentAnswer:
    """The answer of one input."""

    def __init__(self, exchange: Exchange, index: int, takes_parts: bool) -> None:
        self.takes_parts = takes_parts
        self.may_drop = exchange.batch.connection.stages
        self._exchange = exchange
        self._index = index

    def part(self, body: bytes) -> None:
        self._exchange.part(self._index, body)

    def output(self, body: bytes, took: float) -> None:
        self._exchange.last(lambda entry: entry.add_output(self._index, body), took)

    def failure(self, status: Status, message: str, took: float) -> None:
        self._exchange.last(lambda entry: entry.add_failure(self._index, status, message), took)

    def fatal(self, e: BaseException) -> None:
        self._exchange.on_fatal(e)
