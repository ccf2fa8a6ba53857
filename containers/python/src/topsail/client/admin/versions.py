"""The versions of a model. A version is immutable; only how many replicas it has can be changed."""

from __future__ import annotations

from typing import Any

from ..items import Items
from . import call
from .dry_run import read_or_dry_run
from .record import DryRun, Model, Said, Usage, Version, VersionStages
from .resource import Resource, etag, name

_read = read_or_dry_run(Version)


class Versions(Resource):
    """A version is named by its model and itself: `get("iris", "2")`."""

    def list(self, model: str | Model, *, limit: int | None = None, timeout: float | None = None) -> Items[Version]:
        """The versions of a model, by name."""
        return self._admin.listing(call.path("models", name(model), "versions"), Version, timeout, {"limit": limit})

    def get(self, model: str | Model, version: str | Version, *, timeout: float | None = None) -> Version:
        return self._admin.send(call.get(_path(model, version), Version.read), timeout)

    def create(
        self,
        model: str | Model,
        version: str | Version,
        *,
        keep_current: bool = False,
        replace: bool = False,
        replace_contract: bool = False,
        commit: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
        **members: Any,
    ) -> Version | DryRun:
        """Registers a version and, without keep_current, makes it the current one. With `replace` it may be there as
        something else: nothing that that answered is used any more, and its replicas start anew. With
        `replace_contract` it may take inputs of another length than the current one, though apps use the model.
        `commit` is that of the source, which the version shows in `deployed`. `members` are those of the API, as
        bundle, image, command, input_type, replicas, scale, batch, resources."""
        body = version.to_send() if isinstance(version, Version) else {"version": version}
        path = call.path("models", name(model), "versions")
        query: dict[str, Any] = {"keep_current": keep_current, "replace": replace, "replace_contract": replace_contract}
        query |= {"commit": commit, "dry_run": dry_run}
        sent = call.create(path, _read, body | members, **query)
        return self._admin.send(sent, timeout)

    def delete(
        self, model: str | Model, version: str | Version, *, dry_run: bool = False, timeout: float | None = None
    ) -> DryRun | None:
        """Deletes a version that nothing uses; else it raises Conflict."""
        return self._admin.send(call.delete(_path(model, version), etag(version), dry_run=dry_run), timeout)

    def scale(
        self,
        model: str | Model,
        version: str | Version,
        replicas: int | None = None,
        *,
        scale: dict[str, Any] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Version | DryRun:
        """Sets a number of replicas, or with `scale={"min": 1, "max": 8}` bounds between which it follows demand."""
        body = {k: v for k, v in {"replicas": replicas, "scale": scale}.items() if v is not None}
        path = _path(model, version, "scale")
        return self._admin.send(call.change("PUT", path, _read, body, etag(version), dry_run=dry_run), timeout)

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
    ) -> Version | DryRun:
        """Holds the number of replicas, whatever the version and demand say, until a time (as 2030-01-31T12:00:00Z) or
        its release. -1 holds it where it is."""
        body = {k: v for k, v in {"count": count, "until": until, "reason": reason}.items() if v is not None}
        path = _path(model, version, "pin")
        return self._admin.send(call.change("PUT", path, _read, body, etag(version), dry_run=dry_run), timeout)

    def release(
        self, model: str | Model, version: str | Version, *, dry_run: bool = False, timeout: float | None = None
    ) -> Version | DryRun:
        """Takes the pin away."""
        path = _path(model, version, "pin")
        return self._admin.send(call.change("DELETE", path, _read, etag=etag(version), dry_run=dry_run), timeout)

    def job(self, model: str | Model, version: str | Version, *, timeout: float | None = None) -> Said:
        """How Nomad runs the version, or in local mode the command that a replica runs, in `text`."""
        return self._admin.send(call.get(_path(model, version, "job"), Said.read), timeout)

    def stages(
        self, model: str | Model, version: str | Version, *, window: int | None = None, timeout: float | None = None
    ) -> VersionStages:
        """Where the time of queries went in its stages over the last `window` seconds, 60 if not said, at all its
        replicas; and which stage bounds the others."""
        path = _path(model, version, "stages")
        return self._admin.send(call.get(path, VersionStages.read, window=window), timeout)

    def usage(self, model: str | Model, version: str | Version, *, timeout: float | None = None) -> Usage:
        """What came of the questions to the version since it was registered, at all gateways together."""
        return self._admin.send(call.get(_path(model, version, "usage"), Usage.read), timeout)


def _path(model: str | Model, version: str | Version, *rest: str) -> str:
    return call.path("models", name(model), "versions", name(version, "version"), *rest)
