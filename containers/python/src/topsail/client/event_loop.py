"""Connections of an event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast
from weakref import WeakSet

from .connections import Connections, Stream
from .deadline import Deadline
from .errors import Timeout
from .http import Answer, Request
from .quiet import quiet

T = TypeVar("T")
_MOST_UNREAD = 1 << 20  # bytes of a stream, beyond which its server waits


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def connect(host: str, port: int, tls: ssl.SSLContext | None, seconds: float) -> AwaitedConnection:
    loop = asyncio.get_running_loop()
    more: dict[str, Any] = {"happy_eyeballs_delay": 0.25} if isinstance(loop, asyncio.BaseEventLoop) else {}
    dialing = asyncio.ensure_future(
        loop.create_connection(lambda: AwaitedConnection(loop), host, port, ssl=tls, **more)
    )
    try:
        await asyncio.wait([dialing], timeout=seconds)
        if not dialing.done():
            raise TimeoutError
        _, connection = dialing.result()
    except BaseException:
        dialing.cancel()
        dialing.add_done_callback(_undial)
        raise
    return connection


def _undial(dialing: asyncio.Task[tuple[Any, AwaitedConnection]]) -> None:
    """Closes what came too late."""
    if not dialing.cancelled() and dialing.exception() is None:
        dialing.result()[1].close()


class AwaitedConnection(asyncio.Protocol):
    """See Connection."""

    _transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._came: list[bytes] = []
        self._unread = 0  # bytes of them
        self._lost: Exception | None = None
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    async def send(self, pieces: Iterable[bytes], seconds: float) -> None:
        """It does not wait: receiving the answer does."""
        for piece in pieces:
            self._transport.write(piece)

    async def receive(self, seconds: float | None) -> bytes:
        if not self._came and not self._ended:
            self._waiter = self._loop.create_future()
            await within(seconds, self._waiter)
        if self._lost is not None and not self._came:
            raise self._lost
        came = b"".join(self._came)
        self._came.clear()
        if self._unread > _MOST_UNREAD and not self._ended:
            self._transport.resume_reading()
        self._unread = 0
        return came

    def silent(self) -> bool:
        """Nor is anything of a request still to be sent."""
        file = self._transport.get_extra_info("socket").fileno()
        return not (self._came or self._ended or self._transport.get_write_buffer_size()) and quiet(file)

    def close(self) -> None:
        if not self._loop.is_closed():
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._came.append(data)
        self._unread += len(data)
        if self._unread > _MOST_UNREAD >= self._unread - len(data):
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._lost = True, exc
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def within(seconds: float | None, awaited: asyncio.Future[T]) -> T:
    """It raises TimeoutError."""
    if seconds is None:
        return await awaited
    timer = awaited.get_loop().call_later(seconds, _late, awaited)
    try:
        return await awaited
    finally:
        timer.cancel()


def _late(awaited: asyncio.Future[Any]) -> None:
    if not awaited.done():
        awaited.set_exception(TimeoutError())


class LoopConnections:
    """Connections of the event loop that uses them: at most `most` calls are under way at once, and one more for each
    stream. In another loop they are new, once the first is closed."""

    # Of the loop in which it is used.
    _connections: Connections
    _free: int  # calls that may begin at once
    _turns: OrderedDict[asyncio.Future[None], None]  # calls that wait for their turn
    _streams: WeakSet[Stream]

    def __init__(self, name: str, connections: Callable[[], Connections], most: int) -> None:
        self._name, self._new, self._most = name, connections, most
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None  # when no call is under way any more, once it closes

    async def exchange(self, request: Request, deadline: Deadline) -> Answer:
        """See Connections.exchange. Cancelled, it closes the connection."""
        connections = self._begin()
        await self._enter(deadline)
        try:
            return await connections.exchange(request, deadline)
        finally:
            self._leave()

    async def open(self, request: Request, deadline: Deadline) -> Stream | Answer:
        """See Connections.open."""
        answer = await self._begin().open(request, deadline)
        if isinstance(answer, Stream):
            self._streams.add(answer)
        return answer

    async def close(self) -> None:
        """Ends the streams, waits for the calls under way, and closes the connections. It takes no more calls."""
        loop = asyncio.get_running_loop()
        self._ended = self._ended or loop.create_future()
        if self._loop is not loop:
            return
        for stream in list(self._streams):
            stream.close()
        try:
            if self._free < self._most:
                await asyncio.shield(self._ended)
        finally:
            await self._connections.close()
            await asyncio.sleep(0)  # in which the sockets are closed

    def _begin(self) -> Connections:
        if self._ended is not None:
            raise RuntimeError("this client is closed")
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return self._connections
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("this client is used in another event loop, which is not closed: give each loop its own")
        self._loop, self._connections = loop, self._new()
        self._free, self._turns, self._streams = self._most, OrderedDict(), WeakSet()
        return self._connections

    async def _enter(self, deadline: Deadline) -> None:
        """Waits until fewer calls are under way than may be."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._turns[turn] = None
        try:
            await within(deadline.limit(), turn)
        except TimeoutError:
            busy = f"more than {self._most} calls were under way"
            raise Timeout(f"{self._name} did not answer in time; {busy}") from None
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:  # it came with the cancellation
                self._leave()
            raise
        finally:
            self._turns.pop(turn, None)

    def _leave(self) -> None:
        while self._turns:
            turn, _ = self._turns.popitem(last=False)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
        if self._ended is not None and self._free == self._most and not self._ended.done():
            self._ended.set_result(None)
