"""Lists that come in pages, and answers that go on."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from ..client_errors import ServerError
from ..client_http import Stream
from . import call
from .connection import Admin
from .record import R

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
IDLE = 60.0  # seconds without anything on the stream of events, where something comes every 15


def iterates(method: F) -> F:
    """Marks a method that returns an iterator at once, and asks only when that is read."""
    method.iterates = True  # type: ignore[attr-defined]
    return method


class Listing(Iterator[R], Generic[R]):
    """An iterator over everything in a list; it asks for a page when it has none left. Closing it asks no more."""

    def __init__(self, admin: Admin, path: str, kind: type[R], timeout: float | None, query: dict[str, Any]) -> None:
        self._admin, self._path, self._kind, self._timeout = admin, path, kind, timeout
        self._query = query
        self._items: deque[R] = deque()
        self._last = False

    def __next__(self) -> R:
        while not self._items:
            if self._last:
                raise StopIteration
            self._ask()
        return self._items.popleft()

    def close(self) -> None:
        self._items.clear()
        self._last = True

    def _ask(self) -> None:
        asked = call.get(self._path, lambda answer: _page(answer.body, self._kind), **self._query)
        items, cursor = self._admin.send(asked, self._timeout)
        self._items.extend(items)
        if cursor and cursor == self._query.get("cursor"):
            raise ServerError(f"{self._admin} gives the same page of {self._path} again and again")
        self._query = self._query | {"cursor": cursor}
        self._last = not cursor


class Event(NamedTuple):
    kind: str  # hello, catalog, replicas, traffic, decision, audit or cluster
    data: Any  # of the JSON


class Flow(Iterator[T], Generic[T]):
    """What comes on a stream, as it comes. Closing it, from any thread, ends the iteration."""

    def __init__(self, open: Callable[[], Stream], read: Callable[[Iterator[bytes]], Iterator[T]], idle: float | None):
        self._open, self._read, self._idle = open, read, idle
        self._stream: Stream | None = None
        self._items: Iterator[T] | None = None
        self._closed = False

    def __next__(self) -> T:
        if self._closed:
            raise StopIteration
        if self._items is None:
            self._stream = self._open()
            self._items = self._read(self._stream.lines(self._idle))
        try:
            return next(self._items)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> Flow[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def events(lines: Iterator[bytes]) -> Iterator[Event]:
    """Server-sent events: fields in lines, an empty line after each event, comments that begin with a colon."""
    kind, data = "message", []
    for line in lines:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            kind = value.decode("utf-8", "replace")
        elif name == b"data":
            data.append(value)
        elif not line:
            if data:
                yield Event(kind, _json(b"\n".join(data)))
            kind, data = "message", []


def texts(lines: Iterator[bytes]) -> Iterator[str]:
    return (line.decode("utf-8", "replace") for line in lines)


def _page(body: bytes, kind: type[R]) -> tuple[list[R], str]:
    page = json.loads(body)
    return [kind.of(item) for item in page["items"]], str(page.get("next") or "")


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ServerError(f"an event is not JSON: {data[:100]!r}") from None
