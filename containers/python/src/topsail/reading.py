"""Who reads the connection: the main thread while it waits for a batch, the link's thread while a model computes long.

Where the main thread reads for itself, no other thread has to be woken for a batch, which costs more than all else that
is done for a small one. The link's thread looks now and then, and reads where nobody has done so since it looked last.
It does not for a model that only computes at the moment: its next batch would have to wait until both threads had been
given a processor, one after the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NoReturn

from .connection import Connection
from .conversation import Conversation
from .inbox import Inbox, Job
from .waker import Waker
from .watch import Watch
from .wire.errors import ProtocolError

_LOOK = 0.5  # seconds between two looks; a PING has to wait for two of them at most when a model has begun to compute


class Reading:
    """The turns of the two threads, one connection after the other. Who has the turn holds the lock. Between
    connections that is the link's thread, which opens and closes them. A main thread that never calls wait never has
    the turn."""

    def __init__(self, inbox: Inbox, waker: Waker) -> None:
        """`waker` wakes the link's thread, as the inbox wakes the main thread."""
        self._inbox = inbox
        self._waker = waker
        self._turn = threading.Lock()
        self._turn.acquire()
        self._wanted = False  # the main thread waits while the link's thread has the turn
        self._busy = False  # the main thread has read a batch since the last look
        self._ended: Exception | None = None  # what the main thread met; the turn is left to the link's thread with it
        self._conversation: Conversation
        self._watch: Watch  # the main thread's

    # Called by the main thread.

    def wait(self, seconds: float | None) -> Job | None:
        """The next job, as Inbox.wait gives it."""
        if not self._inbox.idle:
            return self._inbox.wait(0)
        if not self._turn.acquire(blocking=False):
            self._wanted = True  # the link's thread lets go when it has read something, and wakes this one
            try:
                return self._inbox.wait(seconds)
            finally:
                self._wanted = False
        try:
            job = self._read(seconds)
        except (OSError, ProtocolError) as e:
            self._ended = e
            self._waker.wake()
            return None
        except BaseException:
            self._turn.release()
            raise
        self._turn.release()
        return job

    def _read(self, seconds: float | None) -> Job | None:
        until = float("inf") if seconds is None else time.monotonic() + seconds
        while True:  # at least once: who never has time to wait must learn of batches, too
            if self._conversation.listen(self._watch, until - time.monotonic()):
                self._inbox.waker.read()
            if not self._inbox.idle:
                break
            if time.monotonic() >= until:
                return None
        self._busy = True
        return self._inbox.wait(0)

    # Called by the link's thread.

    def keep(self, connection: Connection, conversation: Conversation, on_wake: Callable[[], None]) -> NoReturn:
        """Reads to the end of the connection, by turns. It raises OSError or ProtocolError, and has the turn then."""
        conversation.begin()
        self._conversation, self._watch = conversation, Watch(self._inbox.waker, connection)
        watch = Watch(self._waker, connection)
        while True:
            if conversation.listen(watch):
                on_wake()
            if self._wanted:
                self._turn.release()
                self._inbox.wake()  # always: who waits for the inbox must not do so while nobody reads
                self._stand_by(on_wake)

    def _stand_by(self, on_wake: Callable[[], None]) -> None:
        """Until nobody has read since the last look, and nobody does."""
        watch = Watch(self._waker)
        while True:
            if watch.wait(_LOOK)[1]:
                on_wake()
            if self._ended:
                ended, self._ended = self._ended, None
                raise ended
            if self._busy:
                self._busy = False
            elif self._turn.acquire(blocking=False):
                return
