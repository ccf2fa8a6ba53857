"""The way to a server: sends calls, and reads their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from .answers import Prediction
from .call import Call, unread
from .connections import Stream
from .deadline import Deadline
from .events import EVENT_STREAM
from .http import Answer, Request
from .parts import PartsFlow
from .retry import repeated
from .target import Target, refusal

T = TypeVar("T")


class Exchanges(Protocol):
    """Connections, or those of an event loop."""

    async def exchange(self, request: Request, deadline: Deadline) -> Answer: ...

    async def open(self, request: Request, deadline: Deadline) -> Stream | Answer: ...

    async def close(self) -> None: ...


class Channel:
    """It may be used as its connections may. Timeouts are in seconds; None is the target's."""

    def __init__(self, target: Target, connections: Exchanges, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._target, self._connections, self._sleep = target, connections, sleep

    def __str__(self) -> str:
        return str(self._target)

    async def send(self, call: Call[T], timeout: float | None) -> T:
        """It is repeated meanwhile where that does no harm."""
        deadline = self._target.deadline(timeout)
        return await repeated(
            lambda again: self._attempt(call, deadline, again), deadline, call.repeatable, self._sleep
        )

    async def send_once(self, call: Call[T], timeout: float | None) -> T:
        return await self._attempt(call, self._target.deadline(timeout), False)

    async def stream(self, path: str, accept: str, timeout: float | None) -> Stream:
        """Opens an answer that goes on; the time is for its beginning."""
        return await self._opened(Call("GET", path, unread, headers={"Accept": accept}, repeatable=True), timeout)

    def parts(self, call: Call[Prediction], timeout: float | None) -> PartsFlow:
        """An answer in parts; the time is for the first, and then for each after the one before."""
        call = replace(call, headers={**call.headers, "Accept": EVENT_STREAM})
        idle = self._target.timeout if timeout is None else timeout
        return PartsFlow(lambda: self._opened(call, timeout), str(self), idle)

    async def close(self) -> None:
        await self._connections.close()

    async def _opened(self, call: Call[Any], timeout: float | None) -> Stream:
        deadline = self._target.deadline(timeout)

        async def once(_: bool) -> Stream:
            answer = await self._connections.open(self._target.request(call, deadline), deadline)
            if isinstance(answer, Stream):
                return answer
            raise refusal(answer)

        return await repeated(once, deadline, call.repeatable, self._sleep)

    async def _attempt(self, call: Call[T], deadline: Deadline, again: bool) -> T:
        answer = await self._connections.exchange(self._target.request(call, deadline), deadline)
        return self._target.result(call, answer, again)
