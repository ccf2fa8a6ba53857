"""Who reads the connection: the main thread while it waits for a batch, the link's thread while a model computes long.

Where the main thread reads for itself, no other thread has to be woken for a batch, which costs more than all else that
is done for a small one. The link's thread looks now and then, and reads where no thread has read since its last look.
It does not for a model that only computes at the moment: its next batch would have to wait until both threads had been
given a processor, one after the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NoReturn

from ..protocol.errors import ProtocolError
from .batch import Batch
from .connection import Connection
from .inbox import Inbox
from .poller import Poller
from .session import Session
from .wakeup import Wakeup

# Seconds between two looks. When a model has begun to compute, a PING has to wait for two of them at most. A host looks
# ten times as often, as what it is asked to load must not wait for a model that computes long.
_LOOK = 0.5


class Reader:
    """Lets the two threads read in turn, one connection after the other: the one that holds the lock. Between
    connections that is the link's thread, which opens and closes them."""

    def __init__(self, inbox: Inbox, wakeup: Wakeup) -> None:
        """`wakeup` wakes the link's thread, as the inbox wakes the main thread."""
        self._inbox = inbox
        self._wakeup = wakeup
        self._lock = threading.Lock()
        self._lock.acquire()
        self._wanted = False  # the main thread waits while the link's thread holds the lock
        self._busy = False  # the main thread has read a batch since the last look
        self._ended: Exception | None = None  # what the main thread met; the lock is left to the link's thread with it
        self._session: Session
        self._poller: Poller  # the main thread's

    # Called by the main thread.

    def wait(self, seconds: float | None) -> Batch | None:
        """The next batch, as Inbox.wait gives it."""
        if not self._inbox.idle:
            return self._inbox.wait(0)
        if not self._lock.acquire(blocking=False):
            self._wanted = True  # the link's thread lets go when it has read something, and wakes this one
            try:
                return self._inbox.wait(seconds)
            finally:
                self._wanted = False
        try:
            batch = self._read(seconds)
        except (OSError, ProtocolError) as e:
            self._ended = e
            self._wakeup.wake()
            return None
        except BaseException:
            self._lock.release()
            raise
        self._lock.release()
        return batch

    def _read(self, seconds: float | None) -> Batch | None:
        until = float("inf") if seconds is None else time.monotonic() + seconds
        while True:  # at least once: who never has time to wait must learn of batches, too
            if self._session.listen(self._poller, until - time.monotonic()):
                self._inbox.wakeup.read()
            if not self._inbox.idle:
                break
            if time.monotonic() >= until:
                return None
        self._busy = True
        return self._inbox.wait(0)

    # Called by the link's thread.

    def keep(self, connection: Connection, session: Session, on_wake: Callable[[], None]) -> NoReturn:
        """Reads to the end of the connection, in turn. It raises OSError or ProtocolError, and holds the lock then."""
        session.begin()
        self._session, self._poller = session, Poller(self._inbox.wakeup, connection)
        poller = Poller(self._wakeup, connection)
        while True:
            if session.listen(poller):
                on_wake()
            if self._wanted:
                self._lock.release()
                self._inbox.wake()  # always: who waits for the inbox must not do so while no thread reads
                self._stand_by(on_wake)

    def _stand_by(self, on_wake: Callable[[], None]) -> None:
        """Until no thread has read since the last look, and none does."""
        poller = Poller(self._wakeup)
        while True:
            if poller.wait(_LOOK / 10 if self._inbox.requests else _LOOK)[1]:
                on_wake()
            if self._ended:
                ended, self._ended = self._ended, None
                raise ended
            if self._busy:
                self._busy = False
            elif self._lock.acquire(blocking=False):
                return
