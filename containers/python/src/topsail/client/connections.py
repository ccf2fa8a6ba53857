"""Connections to a server that are kept, with a deadline for every wait. Written once for threads and event loops: the
connections of `blocking` wait within the call, those of `event_loop` give way to others meanwhile."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from .deadline import Deadline
from .errors import ServerError, Timeout, Unavailable
from .http import Answer, NotHttp, Reader, Request, Writer
from .lines import Lines

MOST_BYTES = 256 << 20  # of an answer


class Connection(Protocol):
    """It raises TimeoutError where a wait takes longer than its seconds, and OSError where the connection breaks."""

    async def send(self, pieces: Iterable[bytes], seconds: float) -> None: ...

    async def receive(self, seconds: float | None) -> bytes:
        """What has come, as soon as there is some; nothing at the end. None waits for any time."""
        ...

    def silent(self) -> bool:
        """Whether nothing has come on it while it was idle; its end would count as something."""
        ...

    def close(self) -> None:
        """Also while another task or thread receives, which this ends."""
        ...


class Connections:
    """Those to one server, of which `idle` are kept at the most. Where its connections may be used from many threads,
    so may this."""

    def __init__(
        self, url: str, shown: Mapping[str, str], connect: Callable[[float], Awaitable[Connection]], idle: int
    ) -> None:
        """`shown` are headers of every request; `connect` gets the seconds that there are for it."""
        self._url, self._writer, self._connect, self._most_idle = url, Writer(url, shown), connect, idle
        self._idle: deque[Connection] = deque()

    def __str__(self) -> str:
        return self._url

    async def exchange(self, request: Request, deadline: Deadline) -> Answer:
        """Sends a request and reads the answer, whatever its status. It raises Timeout, Unavailable or ServerError.
        Where it is cut off, it closes the connection."""
        connection, reader = self._kept() or await self._dial(deadline), Reader()
        with self._closing(connection):
            await connection.send(self._writer.pieces(request), deadline.limit())
            answer = await _whole(connection, reader, b"", deadline)
        self._keep(connection, reader)
        return answer

    async def open(self, request: Request, deadline: Deadline) -> Stream | Answer:
        """Sends a request whose answer goes on, on a connection of its own, which is the caller's to close. What is not
        200 comes as an Answer. It raises as exchange does; the deadline is for the beginning."""
        connection, reader, first = await self._dial(deadline), Reader(), b""
        with self._closing(connection):
            await connection.send(self._writer.pieces(request), deadline.limit())
            while not reader.status:
                first = reader.feed(await connection.receive(deadline.limit()))
            if reader.status == 200:
                return Stream(self._url, connection, reader, first)
            answer = await _whole(connection, reader, first, deadline)
        connection.close()
        return answer

    async def close(self) -> None:
        """Closes the idle ones."""
        while connection := self._last():
            connection.close()

    async def _dial(self, deadline: Deadline) -> Connection:
        try:
            return await self._connect(deadline.limit())
        except TimeoutError:
            raise Timeout(f"{self} took no connection in time") from None
        except ssl.SSLError as e:
            raise ServerError(f"{self} cannot be trusted: {e}; ca_file names the authority of its certificate") from e
        except OSError as e:
            error = Unavailable(f"{self} cannot be reached: {e}; is it running there?")
            error.unheard = True
            raise error from e

    def _kept(self) -> Connection | None:
        """The connection used last, unless the server has closed it meanwhile."""
        while connection := self._last():
            if connection.silent():
                return connection
            connection.close()
        return None

    def _last(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _keep(self, connection: Connection, reader: Reader) -> None:
        if reader.reusable and len(self._idle) < self._most_idle:
            self._idle.append(connection)
        else:
            connection.close()

    @contextmanager
    def _closing(self, connection: Connection) -> Iterator[None]:
        """Closes it where an exchange fails: what comes next on it would answer that request."""
        try:
            yield
        except (OSError, NotHttp) as e:
            connection.close()
            if isinstance(e, TimeoutError):
                raise Timeout(f"{self} did not answer in time") from None
            raise Unavailable(f"the connection to {self} broke: {e or type(e).__name__}") from e
        except BaseException:
            connection.close()
            raise


async def _whole(connection: Connection, reader: Reader, first: bytes, deadline: Deadline) -> Answer:
    """The answer when all of it has come; `first` is what of its body has."""
    pieces, size = [first], len(first)
    while not reader.ended:
        piece = reader.feed(await connection.receive(deadline.limit()))
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise ServerError(f"the answer has more than {MOST_BYTES} bytes", reader.status)
    return Answer(reader.status, reader.headers.get("retry-after"), b"".join(pieces), reader.headers.get("etag"))


class Stream:
    """An answer that goes on. One thread or task reads it; any may close it, which ends the reading."""

    def __init__(self, name: str, connection: Connection, reader: Reader, first: bytes) -> None:
        """`first` is what of its body has come."""
        self._name, self._connection, self._reader = name, connection, reader
        self._lines, self._closed = Lines(), False
        self._lines.feed(first, reader.ended)

    @property
    def kind(self) -> str:
        """Its Content-Type."""
        return self._reader.headers.get("content-type", "")

    async def line(self, idle: float | None) -> bytes | None:
        """The next line without its end; None when the answer has ended or the stream is closed. It raises Unavailable
        when the connection breaks or nothing comes for `idle` seconds; None waits for any time. A line beyond a bound
        is cut."""
        while (line := self._lines.next()) is None and not (self._closed or self._reader.ended):
            try:
                data = self._reader.feed(await self._connection.receive(idle))
            except (OSError, NotHttp) as e:
                if self._closed:  # the reading was cut off under it, which shows in many ways
                    return None
                why = "timed out" if isinstance(e, TimeoutError) else e or type(e).__name__
                raise Unavailable(f"the stream from {self._name} broke: {why}") from e
            self._lines.feed(data, self._reader.ended)
        return line

    def close(self) -> None:
        self._closed = True
        self._connection.close()
