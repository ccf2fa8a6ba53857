"""Answers that come in parts, for programs with an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .answers import Prediction
from .errors import Unavailable
from .parts import PartsReader

if TYPE_CHECKING:  # it needs aiohttp
    from .http_aio import AsyncStream


class AsyncParts(AsyncIterator[Any]):
    """See Parts. It is closed as well when the task that waits for a part is cancelled."""

    def __init__(self, open: Callable[[], Awaitable[AsyncStream]], name: str, idle: float) -> None:
        self._open, self._idle = open, idle
        self._reader = PartsReader(name, idle)
        self._stream: AsyncStream | None = None
        self._closed = False

    @property
    def answer(self) -> Prediction | None:
        """See Parts.answer."""
        return self._reader.answer

    def __aiter__(self) -> AsyncIterator[Any]:
        return _Loop(self)

    async def __anext__(self) -> Any:
        try:
            if self._stream is None and not self._closed:
                self._stream = await self._open()
                self._reader.check(self._stream.kind)
            return await self._next()
        except Unavailable as e:
            self.close()
            raise self._reader.failure(e) from e.__cause__
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> AsyncParts:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    async def _next(self) -> Any:
        stream = self._stream
        while stream is not None and not self._closed and (line := await stream.line(self._idle)) is not None:
            if (part := self._reader.read(line)) is not None:
                return part[0]
            if self.answer is not None:
                break
        if not self._closed:
            self._reader.ended()
        raise StopAsyncIteration


class _Loop(AsyncIterator[Any]):
    """One `async for`, which closes the parts when it is left."""

    def __init__(self, parts: AsyncParts) -> None:
        self._parts = parts

    def __aiter__(self) -> _Loop:
        return self

    async def __anext__(self) -> Any:
        return await self._parts.__anext__()

    def __del__(self) -> None:
        self._parts.close()
