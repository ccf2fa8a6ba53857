"""Models, each with its versions, of which one is current."""

from __future__ import annotations

from ..items import Items
from . import call
from .dry_run import read_or_dry_run
from .record import DryRun, Model, ModelChange, Version
from .resource import Resource, etag, name

_read = read_or_dry_run(Model)


class Models(Resource):
    def list(self, *, limit: int | None = None, timeout: float | None = None) -> Items[Model]:
        """All models by name."""
        return self._admin.listing("/models", Model, timeout, {"limit": limit})

    def get(self, model: str | Model, *, timeout: float | None = None) -> Model:
        return self._admin.send(call.get(call.path("models", name(model)), Model.read), timeout)

    def delete(self, model: str | Model, *, dry_run: bool = False, timeout: float | None = None) -> DryRun | None:
        """Deletes all its versions, too. It raises Conflict while an app links the model."""
        path = call.path("models", name(model))
        return self._admin.send(call.delete(path, etag(model), dry_run=dry_run), timeout)

    def set_current(
        self,
        model: str | Model,
        version: str | Version,
        *,
        replace_contract: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Model | DryRun:
        """Makes a version the current one; it takes the traffic when a replica of it is ready. One that takes inputs of
        another length than the current one needs replace_contract while apps use the model."""
        path, body = call.path("models", name(model), "current"), {"version": name(version, "version")}
        query = {"replace_contract": replace_contract, "dry_run": dry_run}
        return self._admin.send(call.change("PUT", path, _read, body, etag(model), **query), timeout)

    def history(
        self, model: str | Model, *, limit: int | None = None, timeout: float | None = None
    ) -> Items[ModelChange]:
        """Which versions came, went and became current, who did it and with which client, the newest first."""
        return self._admin.listing(call.path("models", name(model), "history"), ModelChange, timeout, {"limit": limit})

    def rollback(
        self,
        model: str | Model,
        version: str | Version | None = None,
        *,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Model | DryRun:
        """Makes the version current that was current before, or the one that is named."""
        body = {} if version is None else {"version": name(version, "version")}
        path = call.path("models", name(model), "rollback")
        return self._admin.send(call.act(path, _read, body, etag=etag(model), dry_run=dry_run), timeout)
