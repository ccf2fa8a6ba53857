"""The apps that clients query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..items import Items
from . import call
from .dry_run import read_or_dry_run
from .record import App, DryRun, Model, Said, Usage
from .resource import Resource, etag, name

_read = read_or_dry_run(App)


class Apps(Resource):
    def list(self, *, limit: int | None = None, timeout: float | None = None) -> Items[App]:
        """All apps by name; `limit` is the size of the pages in which they are asked for."""
        return self._admin.listing("/apps", App, timeout, {"limit": limit})

    def get(self, app: str | App, *, timeout: float | None = None) -> App:
        return self._admin.send(call.get(call.path("apps", name(app)), App.read), timeout)

    def create(
        self,
        app: str | App,
        *,
        input_type: str = "doubles",
        slo: float = 0.1,
        dry_run: bool = False,
        timeout: float | None = None,
        **members: Any,
    ) -> App | DryRun:
        """Registers an app that is answered within `slo` seconds. `members` are the others of the API, as
        default_output, models, policy, cache, require_key. A record of an app does instead of all that."""
        body = app.to_send() if isinstance(app, App) else _members(app, input_type, slo) | members
        return self._admin.send(call.create("/apps", _read, body, dry_run=dry_run), timeout)

    def put(
        self,
        app: App,
        *,
        if_match: str | None = None,
        replace_contract: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> App | DryRun:
        """Creates the app, or replaces it whole by this record, which must come from `get` or be forced by
        if_match="*". With `replace_contract` its models may take inputs of another length than clients send."""
        path, found = call.path("apps", app.name), etag(app, if_match)
        query = {"replace_contract": replace_contract, "dry_run": dry_run}
        sent = call.change("PUT", path, _read, app.to_send(), found, **query)
        return self._admin.send(replace(sent, repeatable=found == "*"), timeout)  # a creation finds itself there

    def update(
        self,
        app: str | App,
        *,
        replace_contract: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
        **members: Any,
    ) -> App | DryRun:
        """Changes some members: `update("wine", latency_slo_micros=20000)`. None takes a member away. With
        `replace_contract` it is as with `put`."""
        path = call.path("apps", name(app))
        query = {"replace_contract": replace_contract, "dry_run": dry_run}
        return self._admin.send(call.change("PATCH", path, _read, members, etag(app), **query), timeout)

    def delete(self, app: str | App, *, dry_run: bool = False, timeout: float | None = None) -> DryRun | None:
        path = call.path("apps", name(app))
        return self._admin.send(call.delete(path, etag(app), dry_run=dry_run), timeout)

    def link(
        self,
        app: str | App,
        model: str | Model,
        *,
        replace_contract: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> App | DryRun:
        """Lets the app ask the model; one that is linked already stays so. `replace_contract` is as with `put`."""
        path = call.path("apps", name(app), "links", name(model))
        query = {"replace_contract": replace_contract, "dry_run": dry_run}
        return self._admin.send(call.change("PUT", path, _read, etag=etag(app), **query), timeout)

    def unlink(
        self, app: str | App, model: str | Model, *, dry_run: bool = False, timeout: float | None = None
    ) -> App | DryRun:
        path = call.path("apps", name(app), "links", name(model))
        return self._admin.send(call.change("DELETE", path, _read, etag=etag(app), dry_run=dry_run), timeout)

    def set_policy(
        self, app: str | App, policy: dict[str, Any], *, dry_run: bool = False, timeout: float | None = None
    ) -> App | DryRun:
        """The selection policy, as `{"kind": "exp4", ...}`."""
        path = call.path("apps", name(app), "policy")
        return self._admin.send(call.change("PUT", path, _read, policy, etag(app), dry_run=dry_run), timeout)

    def insight(
        self, app: str | App, *, user: str | None = None, context: str | None = None, timeout: float | None = None
    ) -> Said:
        """How the app does and why: its traffic, each model that it may call, and what its policy has learned, of a
        user or in a context where it tells them apart."""
        path = call.path("apps", name(app), "insight")
        return self._admin.send(call.get(path, Said.read, uid=user, context=context), timeout)

    def forget(
        self, app: str | App, *, user: str | None = None, context: str | None = None, timeout: float | None = None
    ) -> None:
        """Lets the policy begin anew; what it knew is kept aside for a day."""
        path = call.path("apps", name(app), "learned")
        return self._admin.send(call.change("DELETE", path, call.nothing, uid=user, context=context), timeout)

    def usage(self, app: str | App, *, timeout: float | None = None) -> Usage:
        """What came of the app's queries since it was registered, at all gateways together."""
        return self._admin.send(call.get(call.path("apps", name(app), "usage"), Usage.read), timeout)


def _members(app: str, input_type: str, slo: float) -> dict[str, Any]:
    return {"name": app, "input_type": input_type, "latency_slo_micros": round(slo * 1e6)}
