"""HTTP/1.1 without input and output: requests become bytes, and bytes become answers. `connections` sends and receives
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

_MOST_HEAD = 1 << 16  # bytes, of the head of an answer, and of what is said beside a chunk
_LARGE = 1 << 16  # bytes of a body
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
        self._left = 0  # bytes of the body or the chunk
        self._step: Callable[[], bytes | None] = self._head

    @property
    def reusable(self) -> bool:
        """Whether the connection can take another request."""
        return self.ended and self._lasting and self._at == len(self._came)

    def feed(self, data: bytes) -> bytes:
        """Takes what has come, nothing at the connection's end, and gives what of the body is in it. It raises
        NotHttp."""
        if not data:
            self._disconnected()
        self._came, self._at = self._came[self._at :] + data, 0
        pieces = []
        while not self.ended and (piece := self._step()) is not None:
            pieces.append(piece)
        return b"".join(pieces)

    def _disconnected(self) -> None:
        if self._step != self._endless:
            raise NotHttp("it ended within the answer" if self.status else "it ended without an answer")
        self.ended = True

    # Each step takes from what has come, and gives what of the body was in it, or None if it needs more.

    def _head(self) -> bytes | None:
        if (text := self._until(b"\r\n\r\n")) is None:
            return None
        first, *lines = text.decode("latin-1").split("\r\n")
        status = first[9:12]
        if not first.startswith("HTTP/1.") or not status.isdecimal():
            raise NotHttp(f"this is no answer of HTTP/1.1: {first[:100]!r}")
        if status.startswith("1"):  # and the answer is still to come
            return b""
        for line in lines:
            name, _, value = line.partition(":")
            self.headers.setdefault(name.lower(), value.strip())
        self.status = int(status)
        said = self.headers.get("connection", "").lower()
        self._lasting = "keep-alive" in said if first.startswith("HTTP/1.0") else "close" not in said
        self._step = self._body()
        return b""

    def _body(self) -> Callable[[], bytes | None]:
        """How the body is read, by what the head says of its end."""
        length = self.headers.get("content-length")
        if self.headers.get("transfer-encoding", "").lower().endswith("chunked"):
            return self._chunk_size
        if length is None and self.status not in (204, 304):
            self._lasting = False
            return self._endless
        if length is not None and not (length.isdecimal() and len(length) < 19):
            raise NotHttp(f"this is no length: {length[:100]!r}")
        self._left = 0 if self.status in (204, 304) else int(length or 0)
        self.ended = self._left == 0
        return self._sized

    def _sized(self) -> bytes | None:
        piece = self._taken()
        self.ended = self._left == 0
        return piece

    def _endless(self) -> bytes | None:
        self._left = len(self._came)
        return self._taken()

    def _chunk_size(self) -> bytes | None:
        if (line := self._until(b"\r\n")) is None:
            return None
        size = line.partition(b";")[0].strip()  # what follows are extensions
        try:
            self._left = int(size, 16) if size.isalnum() else -1
        except ValueError:
            self._left = -1
        if self._left < 0:
            raise NotHttp(f"this is no size of a chunk: {size[:100]!r}")
        self._step = self._chunk if self._left else self._trailer
        return b""

    def _chunk(self) -> bytes | None:
        piece = self._taken()
        if self._left == 0:
            self._step = self._chunk_end
        return piece

    def _chunk_end(self) -> bytes | None:
        if (line := self._until(b"\r\n")) is None:
            return None
        if line:
            raise NotHttp("a chunk is longer than its size")
        self._step = self._chunk_size
        return b""

    def _trailer(self) -> bytes | None:
        if (line := self._until(b"\r\n")) is None:
            return None
        self.ended = not line
        return b""

    def _taken(self) -> bytes | None:
        """What has come of the bytes that are left."""
        piece = self._came[self._at : self._at + self._left]
        self._at += len(piece)
        self._left -= len(piece)
        return piece or None

    def _until(self, end: bytes) -> bytes | None:
        """What has come before this end, if it has."""
        found = self._came.find(end, self._at, self._at + _MOST_HEAD)
        if found < 0 and len(self._came) - self._at < _MOST_HEAD:
            return None
        if found < 0:
            raise NotHttp(f"its head has more than {_MOST_HEAD} bytes")
        text = self._came[self._at : found]
        self._at = found + len(end)
        return text
