"""An event loop that runs queries as tasks, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any

from ..error_log import ErrorLog
from .call import Call


class EventLoop:
    """Starts with its first query. Calls are answered on its thread alone."""

    def __init__(self, predict: Callable[..., Any], most: int | None, errors: ErrorLog) -> None:
        """At most so many run; None: all."""
        self._predict = predict
        self._errors = errors
        self._loop = asyncio.new_event_loop()
        self._places: AbstractAsyncContextManager[Any] = asyncio.Semaphore(most) if most else nullcontext()
        self._tasks: dict[Call, asyncio.Task[None]] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="topsail-event-loop", daemon=True)
        self._lock = threading.Lock()  # guards the start of the thread

    @property
    def call_soon(self) -> Callable[[Callable[[], None]], object]:
        """For what is to be done on its thread after all that is due now, called there."""
        return self._loop.call_soon

    def start(self, call: Call) -> None:
        with self._lock:
            if not self._thread.ident:
                self._thread.start()
        self._loop.call_soon_threadsafe(self._begin, call)

    def cancel(self, call: Call) -> None:
        """The task is cancelled, whatever it waits for."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel, call)

    def close(self, patience: float) -> None:
        """Cancels what runs, waits some seconds for it to end, and ends the thread."""
        if self._thread.ident:
            ended: Future[None] = asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop)
            with suppress(Exception):
                ended.result(patience)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(patience)
            if self._thread.is_alive():  # the model blocks its loop
                return
        self._loop.close()

    # On its own thread.

    def _begin(self, call: Call) -> None:
        task = self._tasks[call] = self._loop.create_task(self._run(call))
        task.add_done_callback(lambda _: self._tasks.pop(call, None))

    def _cancel(self, call: Call) -> None:
        call.cancel()
        if task := self._tasks.get(call):
            task.cancel()

    async def _end_tasks(self) -> None:
        for call in list(self._tasks):
            self._cancel(call)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._loop.shutdown_asyncgens()

    async def _run(self, call: Call) -> None:
        async with self._places:
            if not (arguments := call.begin()):
                return
            x, keywords = arguments
            try:
                result = self._predict(x, **keywords)
                if isinstance(result, Awaitable):
                    result = await result
                if isinstance(result, AsyncIterator):
                    await self._pass_on(result, call)
                    call.finish_parts()
                else:
                    call.finish(result)
            except BaseException as e:  # what ends the process is for the main thread to see
                call.raised(e)

    async def _pass_on(self, parts: AsyncIterator[Any], call: Call) -> None:
        """Sends all parts, or those up to where the query is cancelled."""
        try:
            async for part in parts:
                if not call.add(part):
                    return
                # Sends what all queries have ready, and lets others run even if this one never waits.
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            await self._tell(parts)
            raise
        finally:
            await self._close(parts)

    async def _tell(self, parts: AsyncIterator[Any]) -> None:
        """Raises the cancellation in a generator that was not waiting for anything when it came, but had yielded."""
        if throw := getattr(parts, "athrow", None):
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await throw(asyncio.CancelledError())

    async def _close(self, parts: AsyncIterator[Any]) -> None:
        """Lets a generator know that no more is wanted of it, if it has not come to its end."""
        try:
            if close := getattr(parts, "aclose", None):
                await close()
        except Exception as e:
            self._errors.log("a generator failed while it was closed", e)
