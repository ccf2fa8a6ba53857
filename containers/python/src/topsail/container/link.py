"""The link to the sidecar: a thread that keeps one connection, and reads it by turns with the main thread.

main thread                    link thread
load, announce                 dial, HELLO, ANNOUNCE; again after a loss
wait: read; run, send          reads while the model computes; PING: PONG; metrics once a second
drain, close                   ends
"""

from __future__ import annotations

import logging
import platform
import signal
import threading
import time
from dataclasses import replace

from ..backoff import Backoff
from ..optional import lz4_block
from ..protocol import announce, frame
from ..protocol.announce import Announced
from ..protocol.constants import Feature, Kind, Role
from ..protocol.errors import ProtocolError
from ..protocol.hello import Hello
from ..version import __version__
from . import shared_memory
from .batch import Batch
from .connection import Connection
from .inbox import Inbox
from .poller import Poller
from .reader import Reader
from .reporter import Reporter
from .session import Session
from .settings import Settings
from .wakeup import Wakeup

_log = logging.getLogger("topsail")
_JOIN = 0.5  # seconds that the sidecar has to close after our BYE


class Link:
    """Owns the connection and its thread. Batches go to the inbox, which is closed when it is time to stop; `failure`
    then says whether the sidecar is gone for good."""

    def __init__(self, settings: Settings, announced: Announced, inbox: Inbox, reporter: Reporter) -> None:
        self.failure: str | None = None
        self.wakeup = Wakeup()
        self._settings = settings
        self._address = (settings.host, settings.port)
        self._inbox = inbox
        self._reporter = reporter
        self._lock = threading.Lock()  # guards _announced, _connection and _draining, and orders what is said of them
        self._announced = announced
        self._connection: Connection | None = None
        self._draining = False
        self._reader = Reader(inbox, self.wakeup)
        self._opened = threading.Event()  # set for good by the first connection
        self._thread = threading.Thread(target=self._run, name="topsail-link", daemon=True)

    # Called by the main thread.

    def start(self) -> None:
        self._thread.start()

    @property
    def connected(self) -> bool:
        return self._connection is not None

    def wait(self, seconds: float | None) -> Batch | None:
        """The next batch, or None when the inbox was woken or the time is over. The thread that calls this reads the
        connection itself as long as it waits."""
        return self._reader.wait(seconds)

    def announce(self, announced: Announced, *more: Announced, on: Connection | None = None) -> None:
        """Says now, and again after each reconnection, what is served; and more, in the same frame, if the connection
        is still the one that it is meant for."""
        with self._lock:
            self._announced = announced
            if self._connection:
                self._say(self._connection, *(more if self._connection is on else ()))

    def _say(self, connection: Connection, *more: Announced) -> None:
        own = self._announced if connection.parts else replace(self._announced, concurrency=0)
        connection.send(frame.encode(Kind.ANNOUNCE, announce.encode(*more, own)))

    def drain(self) -> None:
        """Takes no more batches, and tells the sidecar. No connection is opened from now on."""
        with self._lock:
            said, self._draining = self._draining, True  # at once: a second signal may end what follows
            if not said and self._connection:
                self._connection.send(frame.encode(Kind.DRAIN))
        self._inbox.close()

    def close(self, reason: str, patience: float = 0.0) -> None:
        """Drains if that was not done, sends the last metrics and BYE, and waits a moment for the thread. A reason that
        the sidecar should hear is worth some seconds of patience where there has been no connection yet."""
        self._opened.wait(patience)
        self.drain()
        with self._lock:
            connection = self._connection
        if connection:
            self._reporter.send(connection)
            connection.say_bye(reason)
        self.wakeup.wake()
        self._thread.join(_JOIN)

    # Called by the link's own thread.

    def _run(self) -> None:
        try:
            self._keep_connected()
        except Exception as e:  # without this thread the container would be silent for good
            _log.exception("the link to the sidecar failed")
            self.failure = f"the link to the sidecar failed: {type(e).__name__}: {e}"
            self._inbox.close()

    def _keep_connected(self) -> None:
        backoff = Backoff()
        last_seen = time.monotonic()
        while not self._draining:
            began = time.monotonic()
            problem = self._hold()
            now = time.monotonic()
            if not isinstance(problem, NotOpened):
                last_seen = now
                backoff.lived(now - began)
            if self._draining:
                return
            _log.warning("no connection to the sidecar at %s:%d: %s", *self._address, problem)
            left = last_seen + self._settings.give_up - now
            if left <= 0:
                self._give_up(problem)
                return
            self._pause(min(backoff.next(), left))

    def _hold(self) -> Exception:
        """Opens a connection, keeps it as long as it lives, and returns why it ended."""
        try:
            connection = Connection.open(self._address, self._hello())
        except (OSError, ProtocolError) as e:
            return NotOpened(str(e))
        if self._settings.stage and Feature.STAGES not in connection.features:
            connection.close("this container is a stage of a pipeline")
            return NotOpened("the sidecar is of a version of Topsail that knows no pipelines")
        if self._inbox.requests and Feature.HOST not in connection.features:
            connection.close("this container is a host of models")
            return NotOpened("the sidecar is of a version of Topsail that knows no hosts of several models")
        reason = ""
        try:
            self._begin(connection)
            session = Session(connection, self._inbox, self._reporter)
            self._reader.keep(connection, session, self._on_wake)
        except ProtocolError as e:
            reason = str(e)
            return e
        except OSError as e:
            return e
        finally:
            with self._lock:
                self._connection = None
            connection.close(reason)
            self._inbox.disconnected(connection)

    def _begin(self, connection: Connection) -> None:
        with self._lock:
            self._connection = connection
            self._say(connection)
        self._opened.set()
        self._reporter.start_over()
        _log.info("connected to the sidecar at %s:%d", *self._address)

    def _hello(self) -> Hello:
        return Hello(
            role=Role.CONTAINER,
            features=self._features(),
            name=self._settings.replica,
            token=self._settings.current_token().encode(),
            software=f"topsail-python/{__version__} {platform.python_implementation()}/{platform.python_version()}",
        )

    def _features(self) -> Feature:
        features = Feature.STAGES | Feature.TENSORS
        if shared_memory.SUPPORTED:
            features |= Feature.MEMORY
        if self._inbox.requests:
            features |= Feature.HOST
        elif not self._settings.stage:
            features |= Feature.PARTS
        return features | Feature.LZ4 if lz4_block else features

    def _on_wake(self) -> None:
        numbers = self.wakeup.read()
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self.drain()

    def _pause(self, seconds: float) -> None:
        poller = Poller(self.wakeup)
        until = time.monotonic() + seconds
        while not self._draining and (left := until - time.monotonic()) > 0:
            if poller.wait(left)[1]:
                self._on_wake()

    def _give_up(self, problem: Exception) -> None:
        host, port = self._address
        self.failure = (
            f"no connection to the sidecar at {host}:{port} for {self._settings.give_up:g} s ({problem}): "
            "is it still running?"
        )
        self._inbox.close()


class NotOpened(ConnectionError):
    """No connection came to be."""
