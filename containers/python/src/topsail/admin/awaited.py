"""The way to the management service for programs with an event loop: nouns return what is awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from ..client_channel_async import AsyncChannel
from ..client_http_async import AsyncStream
from .base import R
from .listing import Pages

T = TypeVar("T")


class AwaitedAdmin(AsyncChannel):
    """See Admin."""

    def listing(self, path: str, kind: type[R], timeout: float | None, query: dict[str, Any]) -> AwaitedListing[R]:
        return AwaitedListing(self, Pages(path, kind, query), timeout)

    def flow(
        self,
        path: str,
        accept: str,
        reader: Callable[[], Callable[[bytes], T | None]],
        idle: float | None,
        timeout: float | None,
    ) -> AwaitedFlow[T]:
        return AwaitedFlow(lambda: self.stream(path, accept, timeout), reader(), idle)


class AwaitedIterator(AsyncIterator[T]):
    """A list or a stream. Whoever stops before its end closes it, or uses it with `async with`."""

    def close(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> AwaitedIterator[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AwaitedListing(AwaitedIterator[R], Generic[R]):
    """Everything in a list; it asks for a page when it has none left."""

    def __init__(self, channel: AsyncChannel, pages: Pages[R], timeout: float | None) -> None:
        self._channel, self._pages, self._timeout = channel, pages, timeout

    async def __anext__(self) -> R:
        while not self._pages.items:
            if self._pages.last:
                raise StopAsyncIteration
            await self._channel.send(self._pages.next(), self._timeout)
        return self._pages.items.popleft()

    def close(self) -> None:
        self._pages.close()


class AwaitedFlow(AwaitedIterator[T], Generic[T]):
    """What comes on a stream, as it comes. It is closed when the task that waits for it is cancelled."""

    def __init__(
        self, open: Callable[[], Awaitable[AsyncStream]], read: Callable[[bytes], T | None], idle: float | None
    ) -> None:
        self._open, self._read, self._idle = open, read, idle
        self._stream: AsyncStream | None = None
        self._closed = False

    async def __anext__(self) -> T:
        if self._closed:
            raise StopAsyncIteration
        try:
            if self._stream is None:
                self._stream = await self._open()
            while not self._closed and (line := await self._stream.line(self._idle)) is not None:
                if (item := self._read(line)) is not None:
                    return item
            raise StopAsyncIteration
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()
