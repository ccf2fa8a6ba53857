"""HTTP/1.1 without input and output: requests become bytes, and bytes become answers. `connections` sends and receives
them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

_MOST_HEAD = 1 << 16  # bytes, of the head of an answer, and of what is said beside a chunk
_LARGE = 1 << 16  # bytes of a body
_NO_BODY = (204, 304)  # whatever their heads say
_WITH_BODY = ("POST", "PUT", "PATCH")  # say the length of a body even if there is none


class Answer(NamedTuple):
    status: int
    retry_after: str | None
    body: bytes
    etag: str | None = None


class NotHttp(Exception):
    """What came is no answer; the text says why."""


class Request(NamedTuple):
    method: str
    path: str  # with its query, below the base of the server's URL
    body: bytes | None
    headers: Mapping[str, str]


class Writer:
    """Writes the requests to one server."""

    def __init__(self, url: str, shown: Mapping[str, str]) -> None:
        """`shown` are headers of every request."""
        parts = urlsplit(url)
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
        self._base, self._shown = parts.path.rstrip("/"), {"Host": host, **shown}

    def pieces(self, request: Request) -> list[bytes]:
        """What is sent: one piece, but for a large body, which is not copied. It raises ValueError for headers that are
        none."""
        headers, body = {**self._shown, **request.headers}, request.body or b""
        if request.body is not None or request.method in _WITH_BODY:
            headers["Content-Length"] = str(len(body))
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        text = f"{request.method} {self._base}{request.path} HTTP/1.1\r\n{''.join(lines)}\r\n"
        if not text.count("\r") == text.count("\n") == len(lines) + 2:
            raise ValueError("a header has the end of a line in it")
        head = text.encode("latin-1")
        return [head, body] if len(body) > _LARGE else [head + body]


class Reader:
    """Reads one answer from what comes on a connection, however it is split."""

    def __init__(self) -> None:
        self.status = 0  # until the head has come
        self.headers: dict[str, str] = {}  # by names in small letters
        self.ended = False
        self._lasting = False
        self._came, self._at = b"", 0  # what has come last, and how much of it is read
        self._over = False  # no more comes
        self._pieces = self._read()

    @property
    def reusable(self) -> bool:
        """Whether the connection can take another request."""
        return self.ended and self._lasting and self._at == len(self._came)

    def feed(self, data: bytes) -> bytes:
        """Takes what has come, nothing at the connection's end, and gives what of the body is in it. It raises
        NotHttp."""
        self._over = not data
        self._came, self._at = self._came[self._at :] + data, 0
        body = b"".join(iter(partial(next, self._pieces, None), None))
        if self._over and not self.ended:
            raise NotHttp("it ended within the answer" if self.status else "it ended without an answer")
        return body

    def _read(self) -> Iterator[bytes | None]:
        """The pieces of the body, and None wherever more has to come."""
        while not self.status:
            self._begin((yield from self._until(b"\r\n\r\n")))
        if self.status not in _NO_BODY:
            yield from self._body()
        self.ended = True

    def _begin(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        status = first[9:12]
        if not first.startswith("HTTP/1.") or not status.isdecimal():
            raise NotHttp(f"this is no answer of HTTP/1.1: {first[:100]!r}")
        if status.startswith("1"):  # and the answer is still to come
            return
        for line in lines:
            name, _, value = line.partition(":")
            self.headers.setdefault(name.lower(), value.strip())
        said = self.headers.get("connection", "").lower()
        self._lasting = "keep-alive" in said if first.startswith("HTTP/1.0") else "close" not in said
        self.status = int(status)

    def _body(self) -> Iterator[bytes | None]:
        length = self.headers.get("content-length")
        if self.headers.get("transfer-encoding", "").lower().endswith("chunked"):
            return self._chunks()
        if length is None:
            return self._rest()
        if length.isdecimal() and len(length) < 19:
            return self._next(int(length))
        raise NotHttp(f"this is no length: {length[:100]!r}")

    def _chunks(self) -> Iterator[bytes | None]:
        while size := _size((yield from self._until(b"\r\n"))):
            yield from self._next(size)
            if (yield from self._until(b"\r\n")):
                raise NotHttp("a chunk is longer than its size")
        while (yield from self._until(b"\r\n")):
            pass  # a trailer

    def _next(self, left: int) -> Iterator[bytes | None]:
        while left:
            piece = self._came[self._at : self._at + left]
            self._at += len(piece)
            left -= len(piece)
            yield piece or None

    def _rest(self) -> Iterator[bytes | None]:
        """What comes until the connection ends."""
        self._lasting = False
        while not self._over:
            yield from self._next(len(self._came) - self._at)
            yield None

    def _until(self, end: bytes) -> Generator[None, None, bytes]:
        while (found := self._came.find(end, self._at, self._at + _MOST_HEAD)) < 0:
            if len(self._came) - self._at >= _MOST_HEAD:
                raise NotHttp(f"its head has more than {_MOST_HEAD} bytes")
            yield None
        text, self._at = self._came[self._at : found], found + len(end)
        return text


def _size(line: bytes) -> int:
    """That of a chunk; extensions may follow it."""
    size = line.partition(b";")[0].strip()
    try:
        return int(size if size.isalnum() else b"none", 16)
    except ValueError:
        raise NotHttp(f"this is no size of a chunk: {size[:100]!r}") from None
