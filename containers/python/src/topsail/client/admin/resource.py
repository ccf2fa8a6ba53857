"""What all resources have in common."""

from __future__ import annotations

from typing import Any

from ..errors import BadRequest
from .base import Record
from .connection import Admin


class Resource:
    """One kind of object, with what can be asked of it. Where an object is wanted, its name does, too; with the record
    itself a change happens only if no other client has changed the object since it was read.

    Everywhere `timeout` is the seconds that the call may take, else the client's, and with `dry_run=True` nothing is
    changed, and the answer is a DryRun.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} of {self._admin}>"


def etag(thing: str | Record, given: str | None = None) -> str | None:
    """What a change is to find; a name finds whatever is there."""
    return given if given is not None else thing.etag if isinstance(thing, Record) else None


def name(thing: Any, attribute: str = "name") -> str:
    """The name of what is given by its name or its record."""
    value = thing if isinstance(thing, str) else getattr(thing, attribute, None)
    if not isinstance(value, str):
        raise BadRequest(f"{thing!r} is no {attribute}, and has none")
    return value
