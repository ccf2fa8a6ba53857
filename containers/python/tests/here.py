"""A container in this process, so that a test meets its model by events, and the sidecar's side of it."""

from __future__ import annotations

import socket
import threading
from struct import pack
from typing import Any

from sidecar import PATIENCE, Peer

from topsail.container.container import Container
from topsail.container.input_type import STRINGS
from topsail.container.loading import prepare
from topsail.container.settings import Settings
from topsail.protocol import cancel, predict, reply
from topsail.protocol.cancel import ALL, Cancel
from topsail.protocol.constants import NO_DEADLINE, Feature, Flag, Kind
from topsail.protocol.predict import Input

PARTS = b"\4\x08\0\0\0" + pack("<Q", 1)  # the field of an input that wants its answer in parts
FEATURES = Feature.PARTS | Feature.STAGES


class Here:
    """Serves from when it is made to the end of `with`."""

    def __init__(self, served: Any, input_type: str = "strings", **settings: Any) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        host, port = self.listener.getsockname()
        s = Settings(host, port, "test", "1", input_type, **settings)
        self.container = Container(
            lambda: prepare(served, s.input_type, s.input_length, s.retry_singly, None, s.session, s.concurrency), s
        )
        self.raised: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.container.run()
        except BaseException as e:
            self.raised = e

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()  # first, so that no dialling is waited for
        self.container.stop()
        self.ends()

    def ends(self) -> None:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def accept(self, features: int = FEATURES) -> Sidecar:
        """Shakes hands and waits until the model is ready."""
        peer = Sidecar(self.listener.accept()[0])
        peer.greet(features=features)
        peer.ready_with = peer.wait_ready()
        return peer


class Sidecar(Peer):
    def query(self, x: Any, batch: int = 1, parts: bool = True, left: int = NO_DEADLINE, kind=STRINGS, fields=b""):
        """Sends one input."""
        one = Input(left, [kind.value(x)], (PARTS if parts else b"") + fields)
        self.send(Kind.PREDICT, predict.encode(batch, 1, [one]))

    def cancel(self, batch: int = 1, index: int = ALL) -> None:
        self.send(Kind.CANCEL, cancel.encode(Cancel(batch, index)))

    def came(self):
        """The next entry, which must have a frame of its own; END and only END marks the last one. `batch` says of
        which query."""
        while (f := self.next()) is not None and f.kind in (Kind.PING, Kind.METRICS):
            pass
        assert f is not None and f.kind == Kind.REPLY, f
        got = reply.decode(f.body)
        self.batch = got.batch
        [entry] = got.entries
        assert entry.last == bool(f.flags & Flag.END)
        return entry

    def part(self) -> Any:
        entry = self.came()
        assert not entry.last and entry.status == 0
        return text(entry)

    def last(self) -> Any:
        """The whole, or the status and message of a failure."""
        entry = self.came()
        assert entry.last
        return (entry.status, entry.message) if entry.status else text(entry)

    def all(self) -> list[Any]:
        """The parts, and the whole or failure behind them."""
        found: list[Any] = []
        while not (entry := self.came()).last:
            found.append(text(entry))
        return [*found, (entry.status, entry.message) if entry.status else text(entry)]

    def has_answered_ping(self) -> None:
        """So that all that was sent before has been read."""
        self.send(Kind.PING, bytes(8))
        self.expect(Kind.PONG)


def text(entry: Any) -> Any:
    """The text or JSON of an output; None for one that was left out."""
    return str(entry.values[0].data, "utf-8") if entry.values else None


def passed(event: threading.Event) -> bool:
    return event.wait(PATIENCE)
