"""The way to the management service."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..call import Call
from ..channel import Channel
from ..flow import Flow
from ..items import Items, Source
from .base import R
from .listing import Pages

T = TypeVar("T")


class Admin:
    """What resources ask of it: calls, lists and streams. What it gives is there, or is awaited, as in its client."""

    def __init__(
        self,
        channel: Channel,
        given: Callable[[Coroutine[Any, Any, Any]], Any],
        items: Callable[[Source[Any]], Any],
    ) -> None:
        """`given` makes of a coroutine what a call returns, and `items` of a source what is iterated over."""
        self._channel, self._given, self._items = channel, given, items

    def __str__(self) -> str:
        return str(self._channel)

    def send(self, call: Call[T], timeout: float | None) -> T:
        answer: T = self._given(self._channel.send(call, timeout))
        return answer

    def listing(self, path: str, kind: type[R], timeout: float | None, query: dict[str, Any]) -> Items[R]:
        listed: Items[R] = self._items(Pages(self._channel, path, kind, query, timeout))
        return listed

    def flow(
        self,
        path: str,
        accept: str,
        reader: Callable[[], Callable[[bytes], T | None]],
        idle: float | None,
        timeout: float | None,
    ) -> Items[T]:
        """A stream whose lines a `reader` of its own reads, which breaks after `idle` seconds without anything."""
        flow = Flow(lambda: self._channel.stream(path, accept, timeout), reader(), idle)
        items: Items[T] = self._items(flow)
        return items
