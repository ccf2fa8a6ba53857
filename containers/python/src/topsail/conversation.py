"""What is said on one connection, from ANNOUNCE to its end."""

from __future__ import annotations

import time
from struct import Struct

from .connection import Connection
from .inbox import Full, Inbox, Job
from .orders import TooMany, Unload
from .reporter import Reporter
from .watch import Watch
from .wire import bye, feedback, frame, load, predict
from .wire.constants import Kind, Status
from .wire.errors import ProtocolError
from .wire.frame import Frame
from .wire.load import Load
from .wire.predict import Predict

_TICK = 1.0  # seconds of silence after which a PING goes out
_MOST_SILENT_TICKS = 5
_NONCE = Struct("<Q")


class Left(ConnectionError):
    """The sidecar said BYE."""


class Conversation:
    """Puts batches, feedback and orders into the inbox, and answers all else itself. One thread at a time listens.

    Silence is counted in ticks that really were waited for, not in clock time: a model that holds the interpreter for
    ten seconds must not look like a sidecar that is gone.
    """

    def __init__(self, connection: Connection, inbox: Inbox, reporter: Reporter) -> None:
        self._connection = connection
        self._inbox = inbox
        self._reporter = reporter
        self._silent_ticks = 0
        self._tick = time.monotonic() + _TICK

    def begin(self) -> None:
        """Handles what came with the HELLO. It raises what listen raises."""
        for f in self._connection.early():
            self._handle(f)

    def listen(self, watch: Watch, seconds: float = _TICK) -> bool:
        """Waits until something comes, for some seconds at most, and handles it. `watch` is the thread's own, and the
        answer is whether its waker was woken. It raises OSError or ProtocolError when the conversation is over."""
        heard, woken = watch.wait(max(0.0, min(seconds, self._tick - time.monotonic())))
        if heard:
            self._silent_ticks = 0
            self._tick = time.monotonic() + _TICK
            for f in self._connection.receive():
                self._handle(f)
        elif time.monotonic() >= self._tick:
            self._silent_ticks += 1
            self._tick = time.monotonic() + _TICK
            self._ping()
        self._reporter.send_if_due(self._connection)
        return woken

    def _ping(self) -> None:
        if self._silent_ticks == _MOST_SILENT_TICKS:
            raise TimeoutError(f"nothing was heard from the sidecar for {_MOST_SILENT_TICKS * _TICK:g} s")
        self._connection.send(frame.encode(Kind.PING, _NONCE.pack(self._silent_ticks)))

    def _handle(self, f: Frame) -> None:
        if f.kind == Kind.PREDICT:
            self._take(predict.decode(f.body))
        elif f.kind == Kind.PING:
            self._connection.send(frame.encode(Kind.PONG, _nonce(f.body)))
        elif f.kind == Kind.BYE:
            raise Left(f"the sidecar said BYE: {bye.decode(f.body)}")
        elif f.kind == Kind.FEEDBACK:
            self._inbox.put_feedback(feedback.decode(f.body)[1])
        elif f.kind == Kind.LOAD:
            self._order(*load.decode(f.body))
        elif f.kind == Kind.UNLOAD:
            self._order(Unload(load.decode_unload(f.body)))
        elif f.kind in (Kind.PONG, Kind.CANCEL):
            pass  # that it came is all there is to a PONG; a CANCEL is a hint
        elif f.kind < 128:
            raise ProtocolError("frame kind", 4, f"{f.kind} is not for a container")

    def _take(self, batch: Predict) -> None:
        job = Job(batch, time.monotonic(), self._connection)
        try:
            taken = self._inbox.put(job)
        except Full:
            raise ProtocolError("predict batch", 0, "too many batches were sent at once") from None
        if not taken:
            job.refuse(Status.DRAINING, "this container is stopping")

    def _order(self, *asked: Load | Unload) -> None:
        if self._inbox.orders is None:
            raise ProtocolError("frame kind", 4, "this container is no host of models, and holds its own alone")
        try:
            for one in asked:
                self._inbox.orders.put(one, self._connection)
        except TooMany:
            raise ProtocolError("load count", 0, "too many versions were asked for at once") from None


def _nonce(body: memoryview) -> bytes:
    if len(body) != _NONCE.size:
        raise ProtocolError("ping nonce", 0, f"it has {len(body)} bytes instead of {_NONCE.size}")
    return bytes(body)
