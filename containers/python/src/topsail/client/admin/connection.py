"""The way to the management service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..channel import Channel
from .base import R
from .listing import Flow, Listing, Pages

T = TypeVar("T")


class Admin(Channel):
    """What resources ask of it: calls, lists and streams."""

    def listing(self, path: str, kind: type[R], timeout: float | None, query: dict[str, Any]) -> Listing[R]:
        return Listing(self, Pages(path, kind, query), timeout)

    def flow(
        self,
        path: str,
        accept: str,
        reader: Callable[[], Callable[[bytes], T | None]],
        idle: float | None,
        timeout: float | None,
    ) -> Flow[T]:
        """A stream whose lines a `reader` of its own reads, which breaks after `idle` seconds without anything."""
        return Flow(lambda: self.stream(path, accept, timeout), reader(), idle)
