"""HTTP with connections that are kept, and a deadline for every wait."""

from __future__ import annotations

import io
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .errors import ServerError, Timeout, Unavailable

_MOST_IDLE = 64  # connections
MOST_BYTES = 256 << 20  # of an answer
_MOST_PROBLEM = 1 << 20  # bytes, of one that stands for a stream
MOST_LINE = 64 << 20  # bytes, of a stream


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds, never below 0."""
        return max(0.0, self._end - time.monotonic())

    def limit(self) -> float:
        """Seconds for one wait; when there are none it raises TimeoutError, as the wait would."""
        if left := self.left():
            return left
        raise TimeoutError


class Answer(NamedTuple):
    status: int
    retry_after: str | None
    body: bytes
    etag: str | None = None


class Http:
    """The connections to one server. It may be used from many threads."""

    def __init__(self, url: str, tls: ssl.SSLContext | None, shown: Mapping[str, str]) -> None:
        """`shown` are headers of every request."""
        parts = urlsplit(url)
        self._url, self._base, self._shown = url, parts.path.rstrip("/"), shown
        self._idle: deque[HTTPConnection] = deque()
        host, port = str(parts.hostname), parts.port
        if parts.scheme == "https":
            self._new: Any = partial(HTTPSConnection, host, port, context=tls)
        else:
            self._new = partial(HTTPConnection, host, port)

    def __str__(self) -> str:
        return self._url

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], deadline: Deadline
    ) -> Answer:
        """Sends a request and reads the answer, whatever its status. It raises Timeout, Unavailable or ServerError."""
        connection = self._kept() or self._dial(deadline)
        try:
            connection.response_class = partial(_Response, deadline)  # type: ignore[assignment]
            connection.sock.settimeout(deadline.limit())
            connection.request(method, self._base + path, body, {**self._shown, **headers})
            response = connection.getresponse()
            header = response.getheader
            answer = Answer(response.status, header("Retry-After"), _body(response), header("ETag"))
        except TimeoutError:
            connection.close()
            raise Timeout(f"{self} did not answer in time") from None
        except (OSError, HTTPException) as e:
            connection.close()
            raise Unavailable(f"the connection to {self} broke: {e or type(e).__name__}") from e
        except BaseException:
            connection.close()  # what comes next on it would answer this request
            raise
        self._keep(connection)
        return answer

    def open(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], deadline: Deadline
    ) -> Stream | Answer:
        """Sends a request whose answer goes on, on a connection of its own, which is the caller's to close. What is not
        200 comes as an Answer. It raises Timeout, Unavailable or ServerError; the deadline is for the beginning."""
        connection = self._dial(deadline)
        try:
            connection.sock.settimeout(deadline.limit())
            connection.request(method, self._base + path, body, {**self._shown, **headers})
            sock = connection.sock  # which the connection may forget when the answer has no known end
            response = connection.getresponse()
            if response.status == 200:
                return Stream(str(self), connection, sock, response)
            answer = Answer(response.status, response.getheader("Retry-After"), response.read(_MOST_PROBLEM))
        except TimeoutError:
            connection.close()
            raise Timeout(f"{self} did not answer in time") from None
        except (OSError, HTTPException) as e:
            connection.close()
            raise Unavailable(f"the connection to {self} broke: {e or type(e).__name__}") from e
        connection.close()
        return answer

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _dial(self, deadline: Deadline) -> HTTPConnection:
        try:
            connection: HTTPConnection = self._new(timeout=deadline.limit())
            connection.connect()
            return connection
        except TimeoutError:
            raise Timeout(f"{self} took no connection in time") from None
        except ssl.SSLError as e:
            raise ServerError(f"{self} cannot be trusted: {e}; ca_file names the authority of its certificate") from e
        except OSError as e:
            error = Unavailable(f"{self} cannot be reached: {e}; is it running there?")
            error.unheard = True
            raise error from e

    def _kept(self) -> HTTPConnection | None:
        """The connection used last, unless the server has closed it meanwhile."""
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                return None
            if _silent(connection.sock):
                return connection
            connection.close()
        return None

    def _keep(self, connection: HTTPConnection) -> None:
        if connection.sock is None:  # the server wants no more on it
            return
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()


def _silent(sock: socket.socket) -> bool:
    """Whether nothing has come on an idle connection; its end would count as something."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return not selector.select(0)


def _body(response: HTTPResponse) -> bytes:
    if response.length is not None and response.length <= MOST_BYTES:
        return response.read()
    pieces, size = [], 0
    while piece := response.read(1 << 16):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise ServerError(f"the answer has more than {MOST_BYTES} bytes", response.status)
    return b"".join(pieces)


class Stream:
    """An answer that goes on. One thread reads it; any may close it, which ends the reading."""

    def __init__(self, name: str, connection: HTTPConnection, sock: socket.socket, response: HTTPResponse) -> None:
        self._name, self._connection, self._sock, self._response = name, connection, sock, response
        self._closed = False

    @property
    def kind(self) -> str:
        """Its Content-Type."""
        return self._response.getheader("Content-Type") or ""

    def lines(self, idle: float | None) -> Iterator[bytes]:
        """Lines without their ends, until the answer ends or the stream is closed. It raises Unavailable when the
        connection breaks or nothing comes for `idle` seconds; None waits for any time. A line beyond a bound is cut."""
        self._sock.settimeout(idle)
        while not self._closed:
            try:
                line = self._response.readline(MOST_LINE)
            except (OSError, HTTPException, ValueError, AttributeError) as e:
                if self._closed:  # the reading was cut off under it, which shows in many ways
                    return
                raise Unavailable(f"the stream from {self._name} broke: {e or type(e).__name__}") from e
            if not line:
                return
            yield line.rstrip(b"\r\n")

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class _Response(HTTPResponse):
    """An answer that must be there whole by a deadline, however it trickles."""

    def __init__(self, deadline: Deadline, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_Timed(sock, deadline))


class _Timed(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.limit())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
