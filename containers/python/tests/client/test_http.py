"""HTTP as bytes, which no server and no clock takes part in."""

from random import Random

import pytest

from topsail.client.http import NotHttp, Reader, Request, Writer
from topsail.client.lines import Lines


def test_requests():
    writer = Writer("http://host:80/base/", {"Accept": "a", "B": "b"})
    asked = writer.pieces(Request("GET", "/x?y=1", None, {"Accept": "c"}))
    assert asked == [b"GET /base/x?y=1 HTTP/1.1\r\nHost: host:80\r\nAccept: c\r\nB: b\r\n\r\n"]
    assert writer.pieces(Request("DELETE", "/", None, {}))[0].endswith(b"B: b\r\n\r\n")
    assert writer.pieces(Request("POST", "/", None, {}))[0].endswith(b"\r\nContent-Length: 0\r\n\r\n")
    assert writer.pieces(Request("GET", "/", b"", {}))[0].endswith(b"\r\nContent-Length: 0\r\n\r\n")
    [whole] = writer.pieces(Request("POST", "/", b"body", {}))
    assert whole.endswith(b"\r\nContent-Length: 4\r\n\r\nbody")
    large = bytes(100_000)
    assert writer.pieces(Request("POST", "/", large, {}))[1] is large
    assert b"Host: xn--bcher-kva.de:1\r\n" in Writer("http://bücher.de:1", {}).pieces(Request("GET", "/", None, {}))[0]


@pytest.mark.parametrize("header", ["a\r\nB: c", "a\n", "\ra", "€"])
def test_headers_that_cannot_be_sent(header):
    with pytest.raises(ValueError):
        Writer("http://host", {}).pieces(Request("GET", "/", None, {"A": header}))


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWERS = [  # as they come; the status and body that they are; whether the connection can be used again
    (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", 200, b"body", True),
    (b"HTTP/1.1 200\r\ncontent-length:  0 \r\n\r\n", 200, b"", True),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 204 No\r\n\r\n", 204, b"", True),
    (b"HTTP/1.1 304 Not\r\nContent-Length: 9\r\n\r\n", 304, b"", True),
    (b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", 204, b"", True),
    (b"HTTP/1.1 503 Not\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", 503, b"x", False),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
    (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", 200, b"x", True),
    (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, b"until the end", False),
    (CHUNKED + b"0\r\n\r\n", 200, b"", True),
    (
        CHUNKED + b"2;a=b\r\nbo\r\n0A \r\n0123456789\r\n0\r\nETag: x\r\n\r\n",
        200,
        b"bo0123456789",
        True,
    ),
]


@pytest.mark.parametrize(("said", "status", "body", "reusable"), ANSWERS)
def test_answers_are_the_same_however_their_bytes_are_split(said, status, body, reusable):
    random = Random(1)
    for again in range(40):
        at = sorted(random.sample(range(1, len(said)), random.randrange(1, 9))) if again > 1 else [1]
        cuts = range(1, len(said)) if again == 1 else at
        pieces = [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)]
        reader, read = Reader(), b""
        for piece in pieces:
            assert not reader.ended
            read += reader.feed(piece)
        if not reader.ended:
            read += reader.feed(b"")
        assert (reader.ended, reader.status, read, reader.reusable) == (True, status, body, reusable)


def test_what_comes_after_an_answer():
    """It is none of it, and whoever asked next would get it."""
    reader = Reader()
    assert reader.feed(ANSWERS[0][0] + b"HTTP") == b"body"
    assert (reader.ended, reader.reusable) == (True, False)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "it ended without an answer"),
        (b"HTTP/1.1 200 OK\r\n", "it ended without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbod", "it ended within the answer"),
        (CHUNKED + b"2\r\nbo\r\n", "it ended within the answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "this is no answer of HTTP/1.1: 'SSH-2.0-OpenSSH'"),
        (b"HTTP/1.1 OK\r\n\r\n", "this is no answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "this is no length: '-1'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", "this is no length"),
        (CHUNKED + b"-2\r\n", "this is no size of a chunk: b'-2'"),
        (CHUNKED + b"zz\r\n", "this is no size of a chunk"),
        (CHUNKED + b"2\r\nboo\r\n", "a chunk is longer than its size"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000, "its head has more than 65536 bytes"),
        (CHUNKED + b"1;" + b"b" * 70_000, "its head has more than"),
    ],
)
def test_what_is_no_answer(said, why):
    reader = Reader()
    with pytest.raises(NotHttp, match=why):
        if said:
            reader.feed(said)
        reader.feed(b"")


def test_lines(monkeypatch):
    monkeypatch.setattr("topsail.client.lines.MOST_LINE", 5)
    lines = Lines()
    read = []
    for data, last in (
        (b"a\r\n\nb", False),
        (b"c", False),
        (b"\nlonger", False),
        (b" than 5\nend", False),
        (b"", True),
    ):
        lines.feed(data, last)
        while (line := lines.next()) is not None:
            read.append(line)
    assert read == [b"a", b"", b"bc", b"longer", b" than 5", b"end"]
