"""One session over a socket pair, without a process."""

import socket
import struct
import threading

import pytest
from sidecar import Peer

from topsail.container import session
from topsail.container.connection import Connection
from topsail.container.inbox import Inbox
from topsail.container.poller import Poller
from topsail.container.reporter import Reporter
from topsail.container.session import Session
from topsail.container.wakeup import Wakeup
from topsail.metrics import Registry
from topsail.protocol import frame
from topsail.protocol.constants import Kind, Role
from topsail.protocol.errors import ProtocolError
from topsail.protocol.hello import Hello


@pytest.fixture
def pair():
    """The container's connection, which has skipped the handshake, and the sidecar's end."""
    mine, theirs = socket.socketpair()
    connection = Connection(mine)
    connection.max_frame = 65536
    with Peer(theirs) as peer:
        yield connection, peer
    mine.close()


def listen(connection):
    """Until the session is over."""
    session = Session(connection, Inbox(), Reporter(Registry()))
    watch = Poller(Wakeup(), connection)
    while True:
        session.listen(watch)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (struct.pack("<IBBH", 0xFFFFFFFF, 3, 0, 0), "frame size at byte 0: 4294967295 bytes are more than"),
        (frame.encode(99), "frame kind at byte 4: 99 is not for a container"),
        (frame.encode(Kind.REPLY), "frame kind at byte 4: 4 is not for a container"),
        (frame.encode(Kind.HELLO), "frame kind at byte 4: 1 is not for a container"),
        (frame.encode(0), "frame kind at byte 4: 0 is not for a container"),
        (frame.encode(Kind.PREDICT, b"abc"), "predict head at byte 0"),
        (frame.encode(Kind.PING, b"abcd"), "ping nonce at byte 0: it has 4 bytes instead of 8"),
        (frame.encode(Kind.BYE, b"\xff\xff"), "bye reason at byte 2: 65535 bytes are promised and 0 are left"),
    ],
)
def test_garbage(pair, data, says):
    connection, peer = pair
    peer.sock.sendall(data)
    with pytest.raises(ProtocolError) as e:
        listen(connection)
    assert str(e.value).startswith(says)


def test_optional_kinds_are_skipped(pair):
    connection, peer = pair
    peer.send(128)
    peer.send(255, b"anything")
    peer.send(Kind.BYE, b"\3\0end")
    with pytest.raises(session.ByeReceived, match="the sidecar said BYE: end"):
        listen(connection)


def test_five_pings_without_any_answer_are_enough(pair, monkeypatch):
    monkeypatch.setattr(session, "_TICK", 0.005)
    connection, peer = pair
    with pytest.raises(TimeoutError, match="nothing was heard"):
        listen(connection)
    connection.break_off()
    pings = []
    while f := peer.next():
        pings.append(f.kind)
    assert pings == [Kind.PING] * 4


def test_a_dead_peer_ends_it(pair):
    connection, peer = pair
    peer.sock.close()
    with pytest.raises(ConnectionError, match="closed the connection"):
        listen(connection)


def test_sending_to_a_dead_peer_is_false_and_never_raises(pair):
    connection, peer = pair
    peer.sock.close()
    assert [connection.send(b"x" * 100_000) for _ in range(5)][-1] is False
    assert connection.broken


def test_frames_of_many_threads_stay_whole(pair):
    connection, peer = pair
    bodies = [bytes([i]) * 3000 for i in range(8)]

    def send(body):
        for _ in range(50):
            connection.send(frame.encode(Kind.PONG, body))

    threads = [threading.Thread(target=send, args=(b,)) for b in bodies]
    for t in threads:
        t.start()
    got = [bytes(peer.next().body) for _ in range(400)]
    for t in threads:
        t.join()
    assert sorted(got) == sorted(bodies * 50)


def shake(answer):
    """Opens a connection to a listener that answers HELLO with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer, args=(listener, answer))
        thread.start()
        try:
            return Connection.open(listener.getsockname(), Hello(role=Role.CONTAINER))
        finally:
            thread.join()


def _answer(listener, answer):
    with Peer(listener.accept()[0]) as peer:
        peer.expect(Kind.HELLO)
        peer.sock.sendall(answer)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (frame.encode(Kind.HELLO), "hello at byte 0: 20 bytes are needed and 0 are left"),
        (
            frame.encode(Kind.HELLO, struct.pack("<4sBBHQI", b"TPS2", 0, 2, 0, 0, 100)),
            "hello max frame at byte 16: 100 is less than 65536",
        ),
        (
            frame.encode(Kind.HELLO, struct.pack("<4sBBHQI", b"TPS2", 0, 1, 0, 0, 65536)),
            "hello role at byte 5: 1 is not that of a sidecar",
        ),
        (
            frame.encode(Kind.HELLO, Hello(role=Role.SIDECAR).encode() + b"\1\xff\0\0\0"),
            "hello field 1 at byte 25: 255 bytes are promised and 0 are left",
        ),
        (frame.encode(Kind.PREDICT), "frame kind at byte 4: 3 came before HELLO"),
    ],
)
def test_wrong_hellos(answer, says):
    with pytest.raises(ProtocolError) as e:
        shake(answer)
    assert str(e.value) == says


def test_frames_that_come_with_the_hello_are_kept():
    connection = shake(
        frame.encode(Kind.HELLO, Hello(role=Role.SIDECAR, max_frame=70000).encode())
        + frame.encode(Kind.PING, bytes(8)) * 2
    )
    assert connection.max_frame == 70000
    assert [f.kind for f in connection.early()] == [Kind.PING] * 2
    assert connection.early() == []
    connection.close()
