"""Iterators over what comes bit by bit: lists and streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Generic, Protocol, TypeVar

from .blocking import finished

T = TypeVar("T")
S = TypeVar("S")
Some = TypeVar("Some", covariant=True)


class Source(Protocol, Generic[Some]):
    async def next(self) -> Some:
        """It raises StopAsyncIteration where there is no more."""
        ...

    def close(self) -> None:
        """There is no more."""
        ...


class Items(Iterator[T], Generic[T]):
    """Everything in a list, or what comes on a stream. Closing it, from any thread, ends the iteration."""

    def __init__(self, source: Source[T]) -> None:
        self._source = source

    def __next__(self) -> T:
        try:
            return finished(self._source.next())
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        self._source.close()

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncItems(AsyncIterator[T], Generic[T]):
    """The same for programs with an event loop. Close it when you stop before its end, or use it with `async with`; it
    is closed as well when the task that waits for the next is cancelled."""

    def __init__(self, source: Source[T]) -> None:
        self._source = source

    async def __anext__(self) -> T:
        return await self._source.next()

    def close(self) -> None:
        self._source.close()

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
