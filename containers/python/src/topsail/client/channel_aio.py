"""The way to a server for programs with an event loop."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, TypeVar

from .answers import Prediction
from .call import Call, unread
from .errors import TopsailError
from .events import EVENT_STREAM
from .http import Deadline
from .http_aio import AsyncHttp, AsyncStream
from .parts_aio import AsyncParts
from .retry import Retries
from .target import Target, refusal

T = TypeVar("T")


class AsyncChannel:
    """See Channel. It belongs to one event loop at a time."""

    def __init__(self, target: Target, connections: int) -> None:
        self._target = target
        self._http = AsyncHttp(target.url, target.tls, target.shown, connections)

    def __str__(self) -> str:
        return str(self._target)

    async def send(self, call: Call[T], timeout: float | None) -> T:
        deadline = self._target.deadline(timeout)
        if not call.repeatable:  # two turns of the loop, in which it sees the ends of idle connections that have come
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        retries: Retries | None = None
        while True:
            try:
                return await self._attempt(call, deadline, retries is not None)
            except TopsailError as e:
                retries = retries or Retries(deadline, call.repeatable)
                wait = retries.wait(e)
            await asyncio.sleep(wait)

    async def send_once(self, call: Call[T], timeout: float | None) -> T:
        return await self._attempt(call, self._target.deadline(timeout), False)

    async def stream(self, path: str, accept: str, timeout: float | None) -> AsyncStream:
        return await self._opened(Call("GET", path, unread, headers={"Accept": accept}, repeatable=True), timeout)

    def parts(self, call: Call[Prediction], timeout: float | None) -> AsyncParts:
        call = replace(call, headers={**call.headers, "Accept": EVENT_STREAM})
        idle = self._target.timeout if timeout is None else timeout
        return AsyncParts(lambda: self._opened(call, timeout), str(self), idle)

    async def close(self) -> None:
        await self._http.close()

    async def _opened(self, call: Call[Any], timeout: float | None) -> AsyncStream:
        deadline = self._target.deadline(timeout)
        retries = Retries(deadline, call.repeatable)
        while True:
            try:
                headers = self._target.headers(call, deadline)
                answer = await self._http.open(call.method, self._target.base + call.path, call.body, headers, deadline)
                if isinstance(answer, AsyncStream):
                    return answer
                raise refusal(answer)
            except TopsailError as e:
                wait = retries.wait(e)
            await asyncio.sleep(wait)

    async def _attempt(self, call: Call[T], deadline: Deadline, again: bool) -> T:
        headers = self._target.headers(call, deadline)
        answer = await self._http.exchange(call.method, self._target.base + call.path, call.body, headers, deadline)
        return self._target.result(call, answer, again)
