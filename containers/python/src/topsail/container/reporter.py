"""Sends the metrics of model code to the sidecar."""

from __future__ import annotations

import logging
import threading
import time

from ..metrics import Registry
from ..protocol import frame, report
from ..protocol.constants import Kind
from .connection import Connection

_log = logging.getLogger("topsail")
_EVERY = 1.0  # seconds; the protocol allows no more


class Reporter:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._lock = threading.Lock()  # the last report comes from the main thread
        self._next = 0.0
        self._warned = False

    def send_if_due(self, connection: Connection) -> None:
        """Sends all totals, at most once a second and only if one changed."""
        if self._registry.changed and time.monotonic() >= self._next:
            self.send(connection)

    def send(self, connection: Connection) -> None:
        with self._lock:
            self._next = time.monotonic() + _EVERY
            series = self._registry.report()
            body, sent = report.encode(series, connection.max_frame)
            if sent < len(series) and not self._warned:
                self._warned = True
                _log.warning("only %d of %d metrics fit into a report", sent, len(series))
            if sent:
                connection.send(frame.encode(Kind.METRICS, body))

    def start_over(self) -> None:
        """After a reconnection: this sidecar may be a new one, which has seen no totals."""
        self._registry.changed = True
