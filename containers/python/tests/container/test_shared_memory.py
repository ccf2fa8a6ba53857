"""Large frames in memory that a sidecar shares, which is this process here."""

import os
import socket
import struct

import numpy as np
import pytest
from sidecar import Container, Peer

from topsail.container import shared_memory
from topsail.container.connection import Connection
from topsail.container.input_type import DOUBLES
from topsail.container.shared_memory import SUPPORTED, SharedMemory
from topsail.protocol import memory, predict, reply
from topsail.protocol.constants import NO_DEADLINE, Feature, Kind
from topsail.protocol.errors import ProtocolError
from topsail.protocol.memory import Memory, Shared
from topsail.protocol.predict import Input

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="no other system has memory without a name")

SIZE = 1 << 16


@pytest.fixture
def file():
    """The sidecar's memory, of three slots."""
    descriptor = os.memfd_create("topsail-test")
    os.ftruncate(descriptor, 3 * SIZE)
    yield descriptor
    os.close(descriptor)


def offer(file, slots=3, size=SIZE):
    path = f"/proc/{os.getpid()}/fd/{file}"
    return Memory(slots, size, path, os.readlink(path))


def put(file, slot, data):
    os.pwrite(file, data, slot * SIZE)
    return Shared(Kind.PREDICT, 2, slot, len(data))


def test_a_slot_is_free_when_no_view_of_it_is_left(file):
    shared = SharedMemory(offer(file))
    assert sorted(shared.free()) == [0, 1, 2]
    assert shared.free() == []

    first = shared.frame(put(file, 0, b"\1" * 800))
    assert (first.kind, first.flags, bytes(first.body)) == (Kind.PREDICT, 2, b"\1" * 800)
    assert first.body.readonly
    second = shared.frame(put(file, 2, b"\2" * SIZE))
    assert shared.free() == []
    kept = np.frombuffer(first.body[8:16], np.uint8)  # such as an input that a model keeps
    del first
    assert shared.free() == []
    del second
    assert shared.free() == [2]
    assert kept.tolist() == [1] * 8
    del kept
    assert shared.free() == [0]
    assert bytes(shared.frame(put(file, 0, b"again")).body) == b"again"


@pytest.mark.parametrize("where", [Shared(3, 0, 3, 10), Shared(3, 0, 0, SIZE + 1), Shared(3, 0, 1, 10)])
def test_frames_that_cannot_be_there(file, where):
    shared = SharedMemory(offer(file))
    shared.free()
    used = shared.frame(put(file, 1, b"x"))
    with pytest.raises(ProtocolError, match="cannot be in slot"):
        shared.frame(where)
    assert bytes(used.body) == b"x"


def test_only_the_sidecars_memory_is_opened(file):
    right = offer(file)
    with pytest.raises(OSError, match="not the sidecar's memory"):
        SharedMemory(right._replace(link="/memfd:topsail-other (deleted)"))
    with pytest.raises(OSError, match="No such file"):
        SharedMemory(right._replace(path="/proc/1/fd/99999"))
    with pytest.raises(OSError, match="smaller"):
        SharedMemory(right._replace(slots=4))


def test_a_python_whose_maps_do_not_know_of_views_shares_nothing(file, monkeypatch):
    monkeypatch.setattr(shared_memory, "_unused", lambda m: True)
    with pytest.raises(OSError, match="do not say"):
        SharedMemory(offer(file))


@pytest.mark.parametrize(
    "body", [struct.pack("<II", 0, SIZE), struct.pack("<II", 4, 1000), struct.pack("<II", 1 << 20, SIZE)]
)
def test_an_offer_that_is_none(body):
    with pytest.raises(ProtocolError, match="are no memory"):
        memory.decode(memoryview(body))


def test_a_connection_says_what_is_free_with_what_it_sends(file):
    mine, theirs = socket.socketpair()
    connection = Connection(mine)
    with Peer(theirs) as peer:
        with pytest.raises(ProtocolError, match="no shared memory"):
            connection.shared(Shared(3, 0, 0, 1))
        connection.share(offer(file)._replace(link="another's"))
        with pytest.raises(ProtocolError, match="no shared memory"):
            connection.shared(Shared(3, 0, 0, 1))

        connection.share(offer(file))
        freed = peer.next()
        assert freed.kind == Kind.FREE and bytes(freed.body) == struct.pack("<III", 0, 1, 2)
        f = connection.shared(put(file, 1, b"abc"))
        connection.send(b"\0\0\0\0\7\0\0\0")
        assert peer.next().kind == Kind.PONG
        del f
        connection.send(b"\0\0\0\0\7\0\0\0")
        freed = peer.next()
        assert freed.kind == Kind.FREE and bytes(freed.body) == struct.pack("<I", 1)
        assert peer.next().kind == Kind.PONG
    mine.close()


def test_a_container_answers_what_is_in_memory(file, tmp_path):
    with Container(tmp_path, "-m", "topsail", "models:Many") as container, container.accept() as peer:
        assert peer.greet(features=Feature.MEMORY).features & Feature.MEMORY
        peer.wait_ready()
        offered = offer(file)
        path, link = offered.path.encode(), offered.link.encode()
        body = struct.pack(f"<IIH{len(path)}sH{len(link)}s", 3, SIZE, len(path), path, len(link), link)
        peer.send(Kind.MEMORY, body)
        free = list(struct.unpack("<III", peer.expect(Kind.FREE)))
        for batch in range(1, 20):
            asked = predict.encode(batch, 1, [Input(NO_DEADLINE, [DOUBLES.value([float(batch)] * 1000)])])
            slot = free.pop()  # there is one always: two are enough
            at = put(file, slot, asked)
            peer.send(Kind.SHARED, struct.pack("<BBHII", Kind.PREDICT, 0, 0, slot, at.size))
            while (f := peer.next()).kind != Kind.REPLY:
                if f.kind == Kind.FREE:
                    free += struct.unpack(f"<{len(f.body) // 4}I", f.body)
            [entry] = reply.decode(f.body).entries
            assert struct.unpack("<d", entry.values[0].data) == (float(batch),)
        while len(free) < 3:  # with what it says next, when it waits
            peer.send(Kind.PING, b"12345678")
            if (f := peer.next()).kind == Kind.FREE:
                free += struct.unpack(f"<{len(f.body) // 4}I", f.body)
