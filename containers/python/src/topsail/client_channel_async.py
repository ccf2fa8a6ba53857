"""The way to a server for programs with an event loop."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from .client_call import Call
from .client_errors import TopsailError
from .client_http import Deadline
from .client_http_async import AsyncHttp, AsyncStream
from .client_retry import Retries
from .client_target import Target, refusal

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
        deadline = self._target.deadline(timeout)
        headers = {"Accept": accept}
        retries = Retries(deadline, repeatable=True)
        while True:
            try:
                answer = await self._http.open(self._target.base + path, headers, deadline)
                if isinstance(answer, AsyncStream):
                    return answer
                raise refusal(answer)
            except TopsailError as e:
                wait = retries.wait(e)
            await asyncio.sleep(wait)

    async def close(self) -> None:
        await self._http.close()

    async def _attempt(self, call: Call[T], deadline: Deadline, again: bool) -> T:
        headers = self._target.headers(call, deadline)
        answer = await self._http.exchange(call.method, self._target.base + call.path, call.body, headers, deadline)
        return self._target.result(call, answer, again)
