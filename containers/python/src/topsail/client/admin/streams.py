"""The streams of records and of models that processes have announced."""

from __future__ import annotations

from collections.abc import Mapping

from ..items import Items
from . import call
from .dry_run import read_or_dry_run
from .record import DryRun, Stream
from .resource import Resource, name

_read = read_or_dry_run(Stream)


class Streams(Resource):
    def list(self, *, limit: int | None = None, timeout: float | None = None) -> Items[Stream]:
        """All streams by name."""
        return self._admin.listing("/streams", Stream, timeout, {"limit": limit})

    def get(self, stream: str | Stream, *, timeout: float | None = None) -> Stream:
        return self._admin.send(call.get(_path(stream), Stream.read), timeout)

    def suspend(
        self, stream: str | Stream, *, reason: str | None = None, dry_run: bool = False, timeout: float | None = None
    ) -> Stream | DryRun:
        """Has a stream take nothing more, in whatever process, until it is resumed: its records wait in the broker.
        What is in flight is finished. `reason` is for others to see."""
        body = {} if reason is None else {"reason": reason}
        return self._admin.send(call.change("PUT", _suspension(stream), _read, body, dry_run=dry_run), timeout)

    def resume(self, stream: str | Stream, *, dry_run: bool = False, timeout: float | None = None) -> Stream | DryRun:
        """Has a stream go on from where it was."""
        return self._admin.send(call.change("DELETE", _suspension(stream), _read, dry_run=dry_run), timeout)

    def map(
        self,
        stream: str | Stream,
        apps: Mapping[str, str | None],
        *,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Stream | DryRun:
        """Sets which app predicts the records of a data stream that name a data type, in every process. None restores
        what the configuration says; data types that `apps` leaves out stay as they are."""
        return self._admin.send(
            call.change("PATCH", _path(stream), _read, {"apps": dict(apps)}, dry_run=dry_run), timeout
        )

    def delete(self, stream: str | Stream, *, dry_run: bool = False, timeout: float | None = None) -> DryRun | None:
        """Forgets a stream that no process serves any more. It raises Conflict while the stream is suspended."""
        return self._admin.send(call.delete(_path(stream), dry_run=dry_run), timeout)


def _suspension(stream: str | Stream) -> str:
    return _path(stream, "suspension")


def _path(stream: str | Stream, *rest: str) -> str:
    return call.path("streams", name(stream), *rest)
