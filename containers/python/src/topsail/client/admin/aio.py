"""The way to the management service for programs with an event loop: resources return what is awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from ..channel_aio import AsyncChannel
from ..http_aio import AsyncStream
from .base import R
from .listing import Pages

T = TypeVar("T")


class AsyncAdmin(AsyncChannel):
    """See Admin."""

    def listing(self, path: str, kind: type[R], timeout: float | None, query: dict[str, Any]) -> AsyncListing[R]:
        return AsyncListing(self, Pages(path, kind, query), timeout)

    def flow(
        self,
        path: str,
        accept: str,
        reader: Callable[[], Callable[[bytes], T | None]],
        idle: float | None,
        timeout: float | None,
    ) -> AsyncFlow[T]:
        return AsyncFlow(lambda: self.stream(path, accept, timeout), reader(), idle)


class AsyncItems(AsyncIterator[T]):
    """A list or a stream. Close it when you stop before its end, or use it with `async with`."""

    def close(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> AsyncItems[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncListing(AsyncItems[R], Generic[R]):
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


class AsyncFlow(AsyncItems[T], Generic[T]):
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
