"""An AsyncClient that is used as a Client is, so that one suite holds for both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from inspect import isawaitable
from typing import Any

from sidecar import PATIENCE

import topsail
from topsail.client.admin.resource import Resource


class AwaitingClient:
    """Its event loop runs in a thread of its own; each call waits for what is awaited there."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._of = topsail.AsyncClient(*arguments, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __getattr__(self, name: str) -> Any:
        return self._waiting(getattr(self._of, name))

    def __repr__(self) -> str:
        return repr(self._of)

    def __enter__(self) -> AwaitingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _waiting(self, thing: Any) -> Any:
        if isinstance(thing, Resource):
            return _Waiting(thing, self._waiting)
        return (lambda *a, **o: self._result(thing(*a, **o))) if callable(thing) else thing

    def _result(self, answer: Any) -> Any:
        if isinstance(answer, AsyncIterator):
            return _Iterating(answer, self._result)
        if not isawaitable(answer):
            return answer

        async def awaited() -> Any:
            return await answer

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result(2 * PATIENCE)


class _Waiting:
    def __init__(self, of: Any, waiting: Any) -> None:
        self._of, self._waiting = of, waiting

    def __getattr__(self, name: str) -> Any:
        return self._waiting(getattr(self._of, name))


class _Iterating(Iterator[Any]):
    def __init__(self, of: Any, result: Any) -> None:
        self._of, self._result = of, result

    def __next__(self) -> Any:
        try:
            return self._result(self._of.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def close(self) -> None:
        self._result(self._of.aclose())

    def __enter__(self) -> _Iterating:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def grow_impatient(flow: Any) -> None:
    """Has a stream wait for what comes next for a moment only. What has come before was given as long as it took."""
    items = flow._of if isinstance(flow, _Iterating) else flow
    items._source._idle = 0.1
