"""Answers that go on, read line by line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from .connections import Stream

T = TypeVar("T")


class Flow(Generic[T]):
    """What comes on a stream, as it comes. The stream is opened when the first is asked for."""

    def __init__(
        self, open: Callable[[], Awaitable[Stream]], read: Callable[[bytes], T | None], idle: float | None
    ) -> None:
        """`read` gets line after line, and gives what has become whole by it. The stream breaks after `idle` seconds
        without anything."""
        self._open, self._read, self._idle = open, read, idle
        self._stream: Stream | None = None
        self._closed = False

    async def next(self) -> T:
        """It raises StopAsyncIteration at the end, and once it is closed."""
        try:
            if self._stream is None and not self._closed:
                self._stream = await self._open()
                self.begun(self._stream)
            while (line := await self._line()) is not None:
                if (item := self._read(line)) is not None:
                    return item
            raise StopAsyncIteration
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Also while another task or thread waits for what is next."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    def begun(self, stream: Stream) -> None:
        """The first look at the stream."""

    def ended(self) -> None:
        """The stream has ended and was not closed."""

    async def _line(self) -> bytes | None:
        if self._stream is None or self._closed:
            return None
        line = await self._stream.line(self._idle)
        if line is None and not self._closed:
            self.ended()
        return line
