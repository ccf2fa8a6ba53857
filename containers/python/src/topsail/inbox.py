"""Batches and feedback on their way from the link's thread to the main thread."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import NamedTuple

from .connection import Connection
from .feedback import FeedbackQueue
from .wire.feedback import Feedback
from .wire.predict import Predict

_MOST = 4  # batches; the sidecar sends one at a time, and the next may cross a reply


class Job(NamedTuple):
    """A batch. It remembers its connection: if that is lost meanwhile, the reply is dropped."""

    batch: Predict
    received: float  # time.monotonic seconds
    connection: Connection


class Full(Exception):
    """More batches were sent at once than the protocol allows."""


class Inbox:
    def __init__(self) -> None:
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
        """A job that waits wakes the other side as well, and then there is no need for more."""
        self.feedback.put(entries)
        if self.idle:
            self.wake()

    def wake(self) -> None:
        """Makes the next wait return None. A signal handler may call it: a SimpleQueue is reentrant."""
        self._jobs.put(None)

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
