"""What is said on one connection, from ANNOUNCE to its end: the link's thread listens here."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from struct import Struct
from typing import NoReturn

from .connection import Connection
from .inbox import Full, Inbox, Job
from .reporter import Reporter
from .waker import Waker
from .wire import bye, feedback, frame, predict
from .wire.constants import Kind, Status
from .wire.errors import ProtocolError
from .wire.frame import Frame
from .wire.predict import Predict
from .wire.reply import Reply

MODEL_ID = 1  # a container announces one model

_TICK = 1.0  # seconds of silence after which a PING goes out
_MOST_SILENT_TICKS = 5
_NONCE = Struct("<Q")


class Left(ConnectionError):
    """The sidecar said BYE."""


class Conversation:
    """Puts batches and feedback into the inbox, and answers all else itself, so also while the model computes."""

    def __init__(self, connection: Connection, inbox: Inbox, reporter: Reporter) -> None:
        self._connection = connection
        self._inbox = inbox
        self._reporter = reporter

    def listen(self, selector: selectors.BaseSelector, waker: Waker, on_wake: Callable[[], None]) -> NoReturn:
        """Ends with an OSError or a ProtocolError. The selector has the connection and the waker registered.

        Silence is counted in ticks that really were waited for, not in clock time: a model that holds the interpreter
        for ten seconds must not look like a sidecar that is gone.
        """
        for f in self._connection.early():
            self._handle(f)
        silent_ticks = 0
        tick = time.monotonic() + _TICK
        while True:
            readable = [key.fileobj for key, _ in selector.select(max(0.0, tick - time.monotonic()))]
            if waker in readable:
                on_wake()
            if self._connection in readable:
                silent_ticks = 0
                tick = time.monotonic() + _TICK
                for f in self._connection.receive():
                    self._handle(f)
            elif time.monotonic() >= tick:
                silent_ticks += 1
                tick = time.monotonic() + _TICK
                self._ping(silent_ticks)
            self._reporter.send_if_due(self._connection)

    def _ping(self, silent_ticks: int) -> None:
        if silent_ticks == _MOST_SILENT_TICKS:
            raise TimeoutError(f"nothing was heard from the sidecar for {_MOST_SILENT_TICKS * _TICK:g} s")
        self._connection.send(frame.encode(Kind.PING, _NONCE.pack(silent_ticks)))

    def _handle(self, f: Frame) -> None:
        if f.kind == Kind.PREDICT:
            self._take(predict.decode(f.body))
        elif f.kind == Kind.PING:
            self._connection.send(frame.encode(Kind.PONG, _nonce(f.body)))
        elif f.kind == Kind.BYE:
            raise Left(f"the sidecar said BYE: {bye.decode(f.body)}")
        elif f.kind == Kind.FEEDBACK:
            self._inbox.put_feedback(feedback.decode(f.body)[1])
        elif f.kind in (Kind.PONG, Kind.CANCEL):
            pass  # that it came is all there is to a PONG; a CANCEL is a hint
        elif f.kind < 128:
            raise ProtocolError("frame kind", 4, f"{f.kind} is not for a container")

    def _take(self, batch: Predict) -> None:
        if batch.model != MODEL_ID:
            self._refuse(batch, Status.UNKNOWN_MODEL, f"this container announced no model {batch.model}")
            return
        try:
            taken = self._inbox.put(Job(batch, time.monotonic(), self._connection))
        except Full:
            raise ProtocolError("predict batch", 0, "too many batches were sent at once") from None
        if not taken:
            self._refuse(batch, Status.DRAINING, "this container is stopping")

    def _refuse(self, batch: Predict, status: Status, message: str) -> None:
        reply = Reply(batch.batch, self._connection.max_frame)
        for index in range(len(batch.inputs)):
            reply.add_failure(index, status, message)
        self._connection.send(reply.finish(0))


def _nonce(body: memoryview) -> bytes:
    if len(body) != _NONCE.size:
        raise ProtocolError("ping nonce", 0, f"it has {len(body)} bytes instead of {_NONCE.size}")
    return bytes(body)
