"""What there is one of: the scheduler, the log of changes, the stream of events, the catalog."""

from __future__ import annotations

from typing import Any

from ..events import EVENT_STREAM, Event, EventReader
from ..items import Items
from . import call
from .record import App, AuditEntry, Decision, Record, Said, Usage, Version
from .resource import Resource

_IDLE = 60.0  # seconds without anything on the stream of events, where something comes every 15


class System(Resource):
    def decisions(
        self,
        model: str | None = None,
        version: str | None = None,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Items[Decision]:
        """The last `limit` decisions of the scheduler, the newest first; 100 if not said."""
        query = {"model": model, "version": version, "limit": limit}
        return self._admin.listing("/decisions", Decision, timeout, query)

    def audit(
        self,
        *,
        kind: str | None = None,
        name: str | None = None,
        who: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Items[AuditEntry]:
        """Every change, the newest first: of all, or of a kind of objects, one object, or by one key."""
        query = {"kind": kind, "name": name, "who": who, "limit": limit}
        return self._admin.listing("/audit", AuditEntry, timeout, query)

    def usage(
        self, model: str | None = None, *, limit: int | None = None, timeout: float | None = None
    ) -> Items[Usage]:
        """What came of every app, and then of every version, since they were registered; or of a model's versions."""
        return self._admin.listing("/usage", Usage, timeout, {"model": model, "limit": limit})

    def events(self, *, timeout: float | None = None) -> Items[Event]:
        """What to read again, as it happens: hello first, then what changes, named in `changed` where that is little.
        It ends when the service stops, and with Unavailable when the connection breaks: a new call begins anew."""
        return self._admin.flow("/events", EVENT_STREAM, EventReader, _IDLE, timeout)

    def scheduler(self, *, timeout: float | None = None) -> Said:
        return self._admin.send(call.get("/scheduler", Said.read), timeout)

    def cluster(self, *, timeout: float | None = None) -> Said:
        """The processes of the system, the servers that it depends on, and alarms."""
        return self._admin.send(call.get("/cluster", Said.read), timeout)

    def set_count(self, role: str, count: int, *, reason: str | None = None, timeout: float | None = None) -> None:
        """Sets how many processes of a role a cluster has: gateway, scheduler, web (management) or stream."""
        body = {"count": count} if reason is None else {"count": count, "reason": reason}
        path = call.path("cluster", "roles", role, "count")
        return self._admin.send(call.change("PUT", path, call.nothing, body), timeout)

    def traffic(self, *, timeout: float | None = None) -> Said:
        """Every app in the last minute, the one that keeps its objective worst first."""
        return self._admin.send(call.get("/traffic", Said.read), timeout)

    def me(self, *, timeout: float | None = None) -> Said:
        """Who this client is to the management service, and where a gateway is."""
        return self._admin.send(call.get("/me", Said.read), timeout)

    def export(self, *, timeout: float | None = None) -> Said:
        """All apps and versions."""
        return self._admin.send(call.get("/catalog", Said.read), timeout)

    def apply(
        self,
        catalog: dict[str, Any] | Said,
        *,
        replace_contract: bool = False,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Said:
        """Brings apps and versions in, all or nothing, as `export` gave them; what was or would be changed is in
        `changes`. With `"prune": True` in it, what an earlier one brought in and this one has not is deleted; with
        `"replace": True`, versions may become something else under their names, as new generations. With
        `replace_contract` apps may get inputs of another length than their clients send."""
        given = catalog.to_dict() if isinstance(catalog, Said) else catalog
        body = {k: v for k, v in given.items() if k != "revision"}
        kinds: dict[str, type[Record]] = {"apps": App, "versions": Version}
        for name, kind in kinds.items():
            if name in body:
                body[name] = [kind.of(member).to_send() for member in body[name]]
        query = {"replace_contract": replace_contract, "dry_run": dry_run}
        return self._admin.send(call.create("/catalog", Said.read, body, **query), timeout)
