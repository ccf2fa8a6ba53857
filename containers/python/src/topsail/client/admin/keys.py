"""The keys that requests must show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..items import Items
from . import call
from .dry_run import read_or_dry_run
from .record import DryRun, Key
from .resource import Resource, name

_read = read_or_dry_run(Key)


class Keys(Resource):
    def list(self, *, limit: int | None = None, timeout: float | None = None) -> Items[Key]:
        """All keys by name, without their secrets."""
        return self._admin.listing("/keys", Key, timeout, {"limit": limit})

    def get(self, key: str | Key, *, timeout: float | None = None) -> Key:
        """A key by its id."""
        return self._admin.send(call.get(_path(key), Key.read), timeout)

    def create(
        self,
        name: str,
        role: str,
        *,
        apps: Sequence[str] | None = None,
        expires: str | None = None,
        limit: dict[str, Any] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> Key | DryRun:
        """Makes a key of role query, viewer, operator, deployer or admin, for all apps or some. Its `secret` is in the
        answer and can never be read again; so the request is sent once."""
        said = {"name": name, "role": role, "apps": apps and [*apps], "expires": expires, "limit": limit}
        body = {k: v for k, v in said.items() if v is not None}
        return self._admin.send(call.act("/keys", _read, body, dry_run=dry_run), timeout)

    def revoke(self, key: str | Key, *, dry_run: bool = False, timeout: float | None = None) -> DryRun | None:
        """Ends a key, by its id, within a second."""
        return self._admin.send(call.delete(_path(key), dry_run=dry_run), timeout)


def _path(key: str | Key) -> str:
    return call.path("keys", name(key, "id"))
