"""HTTP by aiohttp, with the bounds and errors of http."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
from yarl import URL

from . import http
from .errors import ServerError, Timeout, TopsailError, Unavailable
from .http import Answer, Deadline

T = TypeVar("T")


class AsyncHttp:
    """The connections to one server, at most `connections`, and one more for each stream. They are those of one event
    loop: in another they are new, once the first is closed."""

    def __init__(self, url: str, tls: ssl.SSLContext | None, shown: Mapping[str, str], connections: int) -> None:
        parts = urlsplit(url)
        self._url, self._base = url, f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._tls, self._shown, self._most = tls, shown, connections
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way = 0  # calls
        self._ended: asyncio.Future[None] | None = None  # when none is under way any more, once it closes
        self._open: WeakSet[AsyncStream] = WeakSet()

    def __str__(self) -> str:
        return self._url

    async def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], deadline: Deadline
    ) -> Answer:
        """Sends a request and reads the answer, whatever its status. It raises Timeout, Unavailable or ServerError.
        Cancelled, it closes the connection."""
        if self._loop is not asyncio.get_running_loop() or self._ended is not None:
            self._begin()
        self._under_way += 1
        try:
            left = aiohttp.ClientTimeout(total=deadline.limit(), ceil_threshold=math.inf)
            response = await self._calls.request(
                method, self._to(path), data=body, headers=headers, timeout=left, allow_redirects=False
            )
            return await _answer(response)
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as e:
            raise self._error(e) from e
        finally:
            self._under_way -= 1
            if self._ended is not None and not self._under_way and not self._ended.done():
                self._ended.set_result(None)

    async def open(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], deadline: Deadline
    ) -> AsyncStream | Answer:
        """Sends a request whose answer goes on, on a connection of its own, which is the caller's to close. What is not
        200 comes as an Answer. It raises as exchange does; the deadline is for the beginning."""
        self._begin()
        try:
            asked = self._streams.request(method, self._to(path), data=body, headers=headers, allow_redirects=False)
            response = await _within(deadline.limit(), asked)
            if response.status != 200:
                return await _within(deadline.limit(), _answer(response))
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as e:
            raise self._error(e) from e
        stream = AsyncStream(self._url, response)
        self._open.add(stream)
        return stream

    async def close(self) -> None:
        """Ends the streams, waits for the calls under way, and closes the connections. It takes no more calls."""
        for stream in list(self._open):
            stream.close()
        loop = asyncio.get_running_loop()
        self._ended = self._ended or loop.create_future()
        try:
            if self._under_way and self._loop is loop:
                await asyncio.shield(self._ended)
        finally:
            if self._loop is loop:
                await self._calls.close()
                await self._streams.close()

    def _begin(self) -> None:
        if self._ended is not None:
            raise RuntimeError("this client is closed")
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("this client is used in another event loop, which is not closed: give each loop its own")
        self._loop, self._under_way = loop, 0
        self._calls, self._streams = self._session(self._most), self._session(0)

    def _session(self, connections: int) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            headers=self._shown,
            connector=aiohttp.TCPConnector(limit=connections, ssl=self._tls or True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        session._retry_connection = False  # which would send again what has a deadline and rules of its own
        return session

    def _to(self, path: str) -> URL:
        return URL(self._base + path, encoded=True)

    def _error(self, e: Exception) -> TopsailError:
        if isinstance(e, (asyncio.TimeoutError, TimeoutError)):
            busy = f"; more than {self._most} calls were under way" if self._under_way > self._most else ""
            return Timeout(f"{self} did not answer in time{busy}")
        if isinstance(e, aiohttp.ClientSSLError):
            return ServerError(f"{self} cannot be trusted: {e}; ca_file names the authority of its certificate")
        if isinstance(e, aiohttp.ClientConnectorError):
            error = Unavailable(f"{self} cannot be reached: {e.os_error}; is it running there?")
            error.unheard = True
            return error
        return Unavailable(f"the connection to {self} broke: {e or type(e).__name__}")


async def _answer(response: aiohttp.ClientResponse) -> Answer:
    """Read whole, it gives the connection back; else it closes it."""
    headers, most = response.headers, http.MOST_BYTES
    try:
        length = headers.get("Content-Length")
        body = await (response.read() if length and int(length) <= most else _body(response, most))
    except BaseException:
        response.close()
        raise
    return Answer(response.status, headers.get("Retry-After"), body, headers.get("ETag"))


async def _body(response: aiohttp.ClientResponse, most: int) -> bytes:
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise ServerError(f"the answer has more than {most} bytes", response.status)
    return b"".join(pieces)


async def _within(seconds: float | None, asked: Coroutine[Any, Any, T]) -> T:
    """It raises TimeoutError. Before Python 3.12 asyncio.wait_for loses a cancellation that comes with the result."""
    task = asyncio.ensure_future(asked)
    try:
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        task.cancel()


class AsyncStream:
    """An answer that goes on. One task reads it; any may close it, which ends the reading."""

    def __init__(self, name: str, response: aiohttp.ClientResponse) -> None:
        self._name, self._response = name, response
        self._read: list[bytes] = []  # lines that have come, the last first
        self._rest = bytearray()  # of a line that has not ended
        self._closed = False

    @property
    def kind(self) -> str:
        """Its Content-Type."""
        return self._response.headers.get("Content-Type", "")

    async def line(self, idle: float | None) -> bytes | None:
        """The next line without its end; None when the answer has ended or the stream is closed. It raises Unavailable
        when the connection breaks or nothing comes for `idle` seconds; None waits for any time. A line beyond a bound
        is cut."""
        while not self._read:
            try:
                came = await _within(idle, self._response.content.readany())
            except (aiohttp.ClientError, OSError) as e:
                if self._closed:
                    return None
                why = "timed out" if isinstance(e, TimeoutError) else e or type(e).__name__
                raise Unavailable(f"the stream from {self._name} broke: {why}") from e
            self._take(came)
            if not came and not self._read:
                return None
        return self._read.pop()

    def close(self) -> None:
        self._closed = True
        self._response.close()

    def _take(self, came: bytes) -> None:
        """Nothing is the end, which also ends the last line."""
        if b"\n" not in came and came and len(self._rest) + len(came) <= http.MOST_LINE:
            self._rest += came
            return
        *lines, rest = bytes(self._rest + came).split(b"\n")
        if rest and (not came or len(rest) > http.MOST_LINE):
            lines, rest = [*lines, rest], b""
        self._rest = bytearray(rest)
        self._read = [line.rstrip(b"\r") for line in reversed(lines)]
