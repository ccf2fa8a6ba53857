"""The streams of records and of models that processes have announced."""

from __future__ import annotations

from . import call
from .listing import Listing
from .noun import Noun, name
from .record import Rehearsal, Stream
from .rehearsal import read_or_rehearsal

_read = read_or_rehearsal(Stream)


class Streams(Noun):
    def list(self, *, limit: int | None = None, timeout: float | None = None) -> Listing[Stream]:
        """All streams by name."""
        return self._admin.listing("/streams", Stream, timeout, {"limit": limit})

    def get(self, stream: str | Stream, *, timeout: float | None = None) -> Stream:
        return self._admin.send(call.get(_place(stream), Stream.read), timeout)

    def suspend(
        self, stream: str | Stream, *, reason: str | None = None, dry_run: bool = False, timeout: float | None = None
    ) -> Stream | Rehearsal:
        """Has a stream take nothing more, in whatever process, until it is resumed: its records wait in the broker.
        What is in hand is finished. `reason` is for others to see."""
        body = {} if reason is None else {"reason": reason}
        return self._admin.send(call.change("PUT", _suspension(stream), _read, body, dry_run=dry_run), timeout)

    def resume(
        self, stream: str | Stream, *, dry_run: bool = False, timeout: float | None = None
    ) -> Stream | Rehearsal:
        """Has a stream go on from where it was."""
        return self._admin.send(call.change("DELETE", _suspension(stream), _read, dry_run=dry_run), timeout)

    def delete(self, stream: str | Stream, *, dry_run: bool = False, timeout: float | None = None) -> Rehearsal | None:
        """Forgets a stream that no process serves any more. It raises Conflict while the stream is suspended."""
        return self._admin.send(call.delete(_place(stream), dry_run=dry_run), timeout)


def _suspension(stream: str | Stream) -> str:
    return _place(stream, "suspension")


def _place(stream: str | Stream, *rest: str) -> str:
    return call.place("streams", name(stream), *rest)
