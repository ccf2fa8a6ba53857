"""What comes over the link: batches and feedback for the main thread, and what a host is asked to load."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ..protocol.cancel import Cancel
from ..protocol.feedback import Feedback
from .batch import Batch, Full
from .connection import Connection
from .feedback import FeedbackQueue
from .requests import Disconnected, RequestQueue
from .wakeup import Wakeup

if TYPE_CHECKING:
    from .concurrent.calls import Calls

_MOST = 4  # batches; the sidecar sends one at a time, and the next may cross a reply


class Inbox:
    def __init__(self, requests: RequestQueue | None = None) -> None:
        """Only a host takes requests."""
        self.requests = requests
        self.calls: Calls | None = None  # which start at once, of a model that takes them side by side
        self.wakeup = Wakeup()  # for a main thread that waits for more than this inbox
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        self.feedback = FeedbackQueue()
        self._lock = threading.Lock()  # guards closed, so that no batch is put behind the last one
        self.closed = False

    def put(self, batch: Batch) -> bool:
        """False once the inbox is closed. It raises Full or ProtocolError."""
        with self._lock:
            if self.closed:
                return False
            if self.calls is not None and batch.connection.parts:
                self.calls.start(batch)
                return True
            if self._batches.qsize() >= _MOST:
                raise Full
            self._batches.put(batch)
            return True

    def cancel(self, connection: Connection, cancel: Cancel) -> None:
        """A batch is not cancelled: its model runs until it is done."""
        if self.calls is not None:
            self.calls.cancel(connection, cancel)

    def disconnected(self, connection: Connection) -> None:
        """The connection has ended: what came on it is of no use any more."""
        if self.requests:
            self.requests.put(Disconnected(), connection)
        if self.calls is not None:
            self.calls.disconnected(connection)

    def put_feedback(self, entries: list[Feedback]) -> None:
        """A batch that waits wakes the other side as well, and then there is no need for more. A host's models do not
        learn."""
        if self.requests:
            return
        self.feedback.put(entries)
        if self.idle:
            self.wake()

    def wake(self) -> None:
        """Makes the next wait return None. A signal handler may call it: a SimpleQueue is reentrant."""
        self._batches.put(None)
        self.wakeup.wake()

    def close(self) -> None:
        """Takes nothing more; what is inside is still to be answered."""
        with self._lock:
            self.closed = True
        self.wake()

    def wait(self, seconds: float | None) -> Batch | None:
        """The next batch, or None when woken or when the time is over."""
        try:
            return self._batches.get(timeout=seconds)
        except Empty:
            return None

    @property
    def idle(self) -> bool:
        """Whether no batch waits."""
        return self._batches.empty()

    def rest(self) -> list[Batch]:
        """What is left after close."""
        batches = []
        while not self._batches.empty():
            if batch := self._batches.get():
                batches.append(batch)
        return batches
