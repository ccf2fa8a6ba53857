"""What comes over the link: batches and feedback for the main thread, and what a host is asked to load."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import NamedTuple

from .connection import Connection
from .feedback import FeedbackQueue
from .orders import Orders
from .runner import Runner
from .waker import Waker
from .wire.constants import Status
from .wire.feedback import Feedback
from .wire.predict import Predict
from .wire.reply import Reply

_MOST = 4  # batches; the sidecar sends one at a time, and the next may cross a reply


class Job(NamedTuple):
    """A batch. It remembers its connection: if that is lost meanwhile, the reply is dropped."""

    batch: Predict
    received: float  # time.monotonic seconds
    connection: Connection

    def answer(self, runner: Runner | None) -> None:
        """Runs the batch on the model that it is for, if there is one, and sends the outputs."""
        if runner is None:
            self.refuse(Status.UNKNOWN_MODEL, f"this container announced no model {self.batch.model}")
        elif not self.connection.broken:
            c = self.connection
            c.send(runner.run(self.batch, self.received, c.max_frame, may_drop=c.stages))

    def refuse(self, status: Status, message: str) -> None:
        """Says to each input that it was not run."""
        reply = Reply(self.batch.batch, self.connection.max_frame)
        for index in range(len(self.batch.inputs)):
            reply.add_failure(index, status, message)
        self.connection.send(reply.finish(0))


class Full(Exception):
    """More batches were sent at once than the protocol allows."""


class Inbox:
    def __init__(self, orders: Orders | None = None) -> None:
        """Only a host takes orders."""
        self.orders = orders
        self.waker = Waker()  # for a main thread that waits for more than this inbox
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.feedback = FeedbackQueue()
        self._lock = threading.Lock()  # guards closed, so that no job is put behind the last one
        self.closed = False

    def put(self, job: Job) -> bool:
        """False once the inbox is closed. It raises Full."""
        with self._lock:
            if self.closed:
                return False
            if self._jobs.qsize() >= _MOST:
                raise Full
            self._jobs.put(job)
            return True

    def put_feedback(self, entries: list[Feedback]) -> None:
        """A job that waits wakes the other side as well, and then there is no need for more. A host's models do not
        learn."""
        if self.orders:
            return
        self.feedback.put(entries)
        if self.idle:
            self.wake()

    def wake(self) -> None:
        """Makes the next wait return None. A signal handler may call it: a SimpleQueue is reentrant."""
        self._jobs.put(None)
        self.waker.wake()

    def close(self) -> None:
        """Takes nothing more; what is inside is still to be answered."""
        with self._lock:
            self.closed = True
        self.wake()

    def wait(self, seconds: float | None) -> Job | None:
        """The next job, or None when woken or when the time is over."""
        try:
            return self._jobs.get(timeout=seconds)
        except Empty:
            return None

    @property
    def idle(self) -> bool:
        """Whether no batch waits."""
        return self._jobs.empty()

    def rest(self) -> list[Job]:
        """What is left after close."""
        jobs = []
        while not self._jobs.empty():
            if job := self._jobs.get():
                jobs.append(job)
        return jobs
