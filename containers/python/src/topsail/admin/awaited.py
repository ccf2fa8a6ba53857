"""The nouns of a client for programs with an event loop: the same calls, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Executor
from functools import wraps
from typing import Any
from weakref import WeakSet

from .noun import Noun
from .nouns import Nouns

_END = object()


class AwaitedNouns:
    """What the client has, with each call to be awaited, and each list and stream to be read by `async for`."""

    def __init__(self, nouns: Nouns, run: Callable[..., Awaitable[Any]], threads: Executor) -> None:
        """`run` awaits a method: run(timeout, method, *arguments, **options)."""
        self._run_noun, self._noun_threads = run, threads
        self._reading: WeakSet[AwaitedIterator] = WeakSet()
        self.apps = self._awaited(nouns.apps)
        self.models = self._awaited(nouns.models)
        self.versions = self._awaited(nouns.versions)
        self.replicas = self._awaited(nouns.replicas)
        self.artifacts = self._awaited(nouns.artifacts)
        self.streams = self._awaited(nouns.streams)
        self.keys = self._awaited(nouns.keys)
        self.system = self._awaited(nouns.system)
        self.decisions = self.system.decisions
        self.audit = self.system.audit
        self.usage = self.system.usage
        self.events = self.system.events

    def _awaited(self, noun: Noun) -> Awaited:
        return Awaited(noun, self._run_noun, self._read)

    def _read(self, items: Any) -> AwaitedIterator:
        reading = AwaitedIterator(items, self._noun_threads)
        self._reading.add(reading)
        return reading

    def _close_streams(self) -> None:
        for reading in list(self._reading):
            reading.close()


class Awaited:
    """A noun; see the methods of the one that it stands for."""

    def __init__(self, noun: Noun, run: Callable[..., Awaitable[Any]], read: Callable[[Any], AwaitedIterator]) -> None:
        self._noun, self._run, self._read = noun, run, read

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._noun, name)
        if name.startswith("_") or not callable(method):
            raise AttributeError(f"{self._noun!r} has no {name!r}")
        return self._iterating(method) if getattr(method, "iterates", False) else self._awaiting(method)

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._noun) if not name.startswith("_")]

    def __repr__(self) -> str:
        return repr(self._noun)

    def _awaiting(self, method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        @wraps(method)
        async def awaiting(*arguments: Any, timeout: float | None = None, **options: Any) -> Any:
            return await self._run(timeout, method, *arguments, **options)

        return awaiting

    def _iterating(self, method: Callable[..., Any]) -> Callable[..., AwaitedIterator]:
        @wraps(method)
        def iterating(*arguments: Any, **options: Any) -> AwaitedIterator:
            return self._read(method(*arguments, **options))

        return iterating


class AwaitedIterator(AsyncIterator[Any]):
    """A list or a stream, read by threads. Whoever stops before its end closes it, or uses it with `async with`."""

    def __init__(self, items: Any, threads: Executor) -> None:
        self._items: Iterator[Any] = items
        self._threads = threads
        self.close: Callable[[], None] = items.close

    async def __anext__(self) -> Any:
        try:
            item = await asyncio.get_running_loop().run_in_executor(self._threads, next, self._items, _END)
        except asyncio.CancelledError:
            self.close()  # so that the thread is free again
            raise
        if item is _END:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> AwaitedIterator:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
