"""The running copies of versions."""

from __future__ import annotations

from ..items import Items
from . import call
from .record import Replica
from .resource import Resource, name


class Replicas(Resource):
    def list(
        self,
        model: str | None = None,
        version: str | None = None,
        *,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Items[Replica]:
        """Replicas by id; all, or those of a model or a version."""
        query = {"model": model, "version": version, "limit": limit}
        return self._admin.listing("/replicas", Replica, timeout, query)

    def get(self, replica: str | Replica, *, timeout: float | None = None) -> Replica:
        """The replica, with what its sidecar has measured."""
        return self._admin.send(call.get(_path(replica), Replica.read), timeout)

    def restart(self, replica: str | Replica, *, timeout: float | None = None) -> None:
        return self._admin.send(call.act(_path(replica, "restart"), call.nothing), timeout)

    def drain(self, replica: str | Replica, *, timeout: float | None = None) -> None:
        """Lets it end what it has, and makes way for another replica."""
        return self._admin.send(call.act(_path(replica, "drain"), call.nothing), timeout)

    def logs(
        self,
        replica: str | Replica,
        *,
        follow: bool = False,
        lines: int | None = None,
        stream: str | None = None,
        stage: str | None = None,
        idle: float | None = None,
        timeout: float | None = None,
    ) -> Items[str]:
        """The last `lines` lines of its output, 100 if not said. With `follow` also what comes, until the iterator is
        closed, the replica is gone, or nothing has come for `idle` seconds. On a cluster `stream` is stdout, stderr or
        sidecar. With `stage`, only the lines of the workers of this stage, among the last 10,000 lines; with `follow`,
        too, among the last `lines` lines. Replicas that are gone have logs as long as they are kept."""
        query = call.asked({"follow": follow, "lines": lines, "stream": stream, "stage": stage})
        path = _path(replica, "logs") + query
        wait = idle if follow else idle or 10.0
        return self._admin.flow(path, "text/plain", lambda: _text, wait, timeout)


def _path(replica: str | Replica, *rest: str) -> str:
    return call.path("replicas", name(replica, "id"), *rest)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
