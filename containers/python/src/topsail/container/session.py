"""A session with the sidecar: what is said on one connection, from ANNOUNCE to its end."""

from __future__ import annotations

import time
from struct import Struct

from ..protocol import bye, cancel, feedback, frame, load, memory, predict
from ..protocol.constants import Kind, Status
from ..protocol.errors import ProtocolError
from ..protocol.frame import Frame
from ..protocol.load import Load
from ..protocol.predict import Predict
from .batch import Batch, Full
from .connection import Connection
from .inbox import Inbox
from .poller import Poller
from .reporter import Reporter
from .requests import QueueFull, Unload

_TICK = 1.0  # seconds of silence after which a PING goes out
_MOST_SILENT_TICKS = 5
_NONCE = Struct("<Q")


class ByeReceived(ConnectionError):
    """The sidecar said BYE."""


class Session:
    """Puts batches, feedback and requests into the inbox, and answers all else itself. One thread at a time listens.

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

    def listen(self, poller: Poller, seconds: float = _TICK) -> bool:
        """Waits until something comes, for some seconds at most, and handles it. `poller` is the thread's own, and the
        answer is whether its wakeup was woken. It raises OSError or ProtocolError when the session is over."""
        heard, woken = poller.wait(max(0.0, min(seconds, self._tick - time.monotonic())))
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
            raise ByeReceived(f"the sidecar said BYE: {bye.decode(f.body)}")
        elif f.kind == Kind.FEEDBACK:
            self._inbox.put_feedback(feedback.decode(f.body)[1])
        elif f.kind == Kind.LOAD:
            self._request(*load.decode(f.body))
        elif f.kind == Kind.UNLOAD:
            self._request(Unload(load.decode_unload(f.body)))
        elif f.kind == Kind.CANCEL:
            self._inbox.cancel(self._connection, cancel.decode(f.body))
        elif f.kind == Kind.SHARED:
            self._handle(self._connection.shared(memory.decode_shared(f.body)))
        elif f.kind == Kind.MEMORY:
            self._connection.share(memory.decode(f.body))
        elif f.kind == Kind.PONG:
            pass  # that it came is all there is to it
        elif f.kind < 128:
            raise ProtocolError("frame kind", 4, f"{f.kind} is not for a container")

    def _take(self, predicted: Predict) -> None:
        batch = Batch(predicted, time.monotonic(), self._connection)
        try:
            taken = self._inbox.put(batch)
        except Full:
            raise ProtocolError("predict batch", 0, "too many batches were sent at once") from None
        if not taken:
            batch.refuse(Status.DRAINING, "this container is stopping")

    def _request(self, *asked: Load | Unload) -> None:
        if self._inbox.requests is None:
            raise ProtocolError("frame kind", 4, "this container is no host of models, and holds its own alone")
        try:
            for one in asked:
                self._inbox.requests.put(one, self._connection)
        except QueueFull:
            raise ProtocolError("load count", 0, "too many versions were asked for at once") from None


def _nonce(body: memoryview) -> bytes:
    if len(body) != _NONCE.size:
        raise ProtocolError("ping nonce", 0, f"it has {len(body)} bytes instead of {_NONCE.size}")
    return bytes(body)
