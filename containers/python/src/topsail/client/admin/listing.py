"""Lists that come in pages, and answers that go on."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from ..call import Call
from ..channel import Channel
from ..errors import ServerError
from ..http import Answer, Stream
from . import call
from .base import R

T = TypeVar("T")
IDLE = 60.0  # seconds without anything on the stream of events, where something comes every 15


class Pages(Generic[R]):
    """What has come of a list, and the call for what comes next."""

    def __init__(self, path: str, kind: type[R], query: dict[str, Any]) -> None:
        self.items: deque[R] = deque()
        self.last = False
        self._path, self._kind, self._query = path, kind, query

    def next(self) -> Call[None]:
        return call.get(self._path, self._take, **self._query)

    def close(self) -> None:
        self.items.clear()
        self.last = True

    def _take(self, answer: Answer) -> None:
        page = json.loads(answer.body)
        items, cursor = [self._kind.of(item) for item in page["items"]], str(page.get("next") or "")
        if cursor and cursor == self._query.get("cursor"):
            raise ServerError(f"the management service gives the same page of {self._path} again and again")
        self._query = self._query | {"cursor": cursor}
        self.items.extend(items)
        self.last = not cursor


class Listing(Iterator[R], Generic[R]):
    """An iterator over everything in a list; it asks for a page when it has none left. Closing it asks no more."""

    def __init__(self, channel: Channel, pages: Pages[R], timeout: float | None) -> None:
        self._channel, self._pages, self._timeout = channel, pages, timeout
        self.close = pages.close

    def __next__(self) -> R:
        while not self._pages.items:
            if self._pages.last:
                raise StopIteration
            self._channel.send(self._pages.next(), self._timeout)
        return self._pages.items.popleft()


class Flow(Iterator[T], Generic[T]):
    """What comes on a stream, as it comes. Closing it, from any thread, ends the iteration."""

    def __init__(self, open: Callable[[], Stream], read: Callable[[bytes], T | None], idle: float | None) -> None:
        """`read` gets line after line, and gives what has become whole by it."""
        self._open, self._read, self._idle = open, read, idle
        self._stream: Stream | None = None
        self._lines: Iterator[bytes] = iter(())
        self._closed = False

    def __next__(self) -> T:
        if self._closed:
            raise StopIteration
        try:
            if self._stream is None:
                self._stream = self._open()
                self._lines = self._stream.lines(self._idle)
            for line in self._lines:
                if (item := self._read(line)) is not None:
                    return item
            raise StopIteration
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


def text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
