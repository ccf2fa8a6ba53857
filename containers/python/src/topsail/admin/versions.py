"""The versions of a model. A version is immutable; only how many replicas it has can be changed."""

from __future__ import annotations

from typing import Any

from . import call
from .listing import Listing
from .noun import Noun, etag, name
from .record import Model, Rehearsal, Said, Usage, Version, VersionStages
from .rehearsal import read_or_rehearsal

_read = read_or_rehearsal(Version)


class Versions(Noun):
    """A version is named by its model and itself: `get("iris", "2")`."""

    def list(self, model: str | Model, *, limit: int | None = None, timeout: float | None = None) -> Listing[Version]:
        """The versions of a model, by name."""
        return self._admin.listing(call.place("models", name(model), "versions"), Version, timeout, {"limit": limit})

    def get(self, model: str | Model, version: str | Version, *, timeout: float | None = None) -> Version:
        return self._admin.send(call.get(_place(model, version), Version.read), timeout)

    def create(
        self,
        model: str | Model,
        version: str | Version,
        *,
        keep_current: bool = False,
        replace: bool = False,
        commit: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
        **members: Any,
    ) -> Version | Rehearsal:
        """Registers a version and, without keep_current, makes it the current one. With `replace` it may be there as
        something else: nothing that that answered is used any more, and its replicas start anew. `commit` is that of
        the source, which the version shows in `deployed`. `members` are those of the API, as bundle, image, command,
        input_type, replicas, scale, batch, resources."""
        body = version.to_send() if isinstance(version, Version) else {"version": version}
        place = call.place("models", name(model), "versions")
        query: dict[str, Any] = {"keep_current": keep_current, "replace": replace, "commit": commit, "dry_run": dry_run}
        sent = call.create(place, _read, body | members, **query)
        return self._admin.send(sent, timeout)

    def delete(
        self, model: str | Model, version: str | Version, *, dry_run: bool = False, timeout: float | None = None
    ) -> Rehearsal | None:
        """Deletes a version that nothing uses; else it raises Conflict."""
        return self._admin.send(call.delete(_place(model, version), etag(version), dry_run=dry_run), timeout)

    def scale(
        self,
        model: str | Model,
        version: str | Version,
        replicas: int | None = None,
        *,
        scale: dict[str, Any] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Version | Rehearsal:
        """Sets a number of replicas, or with `scale={"min": 1, "max": 8}` bounds between which it follows demand."""
        body = {k: v for k, v in {"replicas": replicas, "scale": scale}.items() if v is not None}
        place = _place(model, version, "scale")
        return self._admin.send(call.change("PUT", place, _read, body, etag(version), dry_run=dry_run), timeout)

    def pin(
        self,
        model: str | Model,
        version: str | Version,
        count: int = -1,
        *,
        until: str | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Version | Rehearsal:
        """Holds the number of replicas, whatever the version and demand say, until a time (as 2030-01-31T12:00:00Z) or
        its release. -1 holds it where it is."""
        body = {k: v for k, v in {"count": count, "until": until, "reason": reason}.items() if v is not None}
        place = _place(model, version, "pin")
        return self._admin.send(call.change("PUT", place, _read, body, etag(version), dry_run=dry_run), timeout)

    def release(
        self, model: str | Model, version: str | Version, *, dry_run: bool = False, timeout: float | None = None
    ) -> Version | Rehearsal:
        """Takes the pin away."""
        place = _place(model, version, "pin")
        return self._admin.send(call.change("DELETE", place, _read, etag=etag(version), dry_run=dry_run), timeout)

    def job(self, model: str | Model, version: str | Version, *, timeout: float | None = None) -> Said:
        """How Nomad runs the version, or in local mode the command that a replica runs, in `text`."""
        return self._admin.send(call.get(_place(model, version, "job"), Said.read), timeout)

    def stages(
        self, model: str | Model, version: str | Version, *, window: int | None = None, timeout: float | None = None
    ) -> VersionStages:
        """Where the time of queries went in its stages over the last `window` seconds, 60 if not said, at all its
        replicas; and which stage bounds the others."""
        place = _place(model, version, "stages")
        return self._admin.send(call.get(place, VersionStages.read, window=window), timeout)

    def usage(self, model: str | Model, version: str | Version, *, timeout: float | None = None) -> Usage:
        """What came of the questions to the version since it was registered, at all gateways together."""
        return self._admin.send(call.get(_place(model, version, "usage"), Usage.read), timeout)


def _place(model: str | Model, version: str | Version, *rest: str) -> str:
    return call.place("models", name(model), "versions", name(version, "version"), *rest)
