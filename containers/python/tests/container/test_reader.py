"""The two threads that read one connection in turn, over a socket pair, with a thread for the link's."""

import socket
import struct
import threading
import time

import pytest
from sidecar import PATIENCE, Peer

from topsail.container import session
from topsail.container.connection import Connection
from topsail.container.inbox import Inbox
from topsail.container.reader import Reader
from topsail.container.reporter import Reporter
from topsail.container.session import Session
from topsail.container.wakeup import Wakeup
from topsail.metrics import Registry
from topsail.protocol.constants import Kind


class Rig:
    """The test is the main thread, and the sidecar."""

    def __init__(self):
        mine, theirs = socket.socketpair()
        self.connection = Connection(mine)
        self.connection.max_frame = 65536
        self.peer = Peer(theirs)
        self.inbox, self.wakeup = Inbox(), Wakeup()
        self.reader = Reader(self.inbox, self.wakeup)
        self.woken = threading.Event()
        self.readers = []  # the thread that put each batch into the inbox
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.end = None
        put = self.inbox.put
        self.inbox.put = lambda batch: self.readers.append(threading.current_thread()) or put(batch)

    def keep(self):
        talk = Session(self.connection, self.inbox, Reporter(Registry()))
        try:
            self.reader.keep(self.connection, talk, self.on_wake)
        except Exception as e:
            self.end = e

    def on_wake(self):
        self.wakeup.read()
        self.woken.set()

    def batch(self):
        """The next batch; what only wakes is skipped."""
        until = time.monotonic() + PATIENCE
        while not (batch := self.reader.wait(until - time.monotonic())):
            assert time.monotonic() < until
        return batch

    def take_lock(self):
        """Has the main thread read for itself: the link's thread lets it when both meet."""
        for batch in (1, 2):
            self.peer.ask([1.0], batch=batch)
            assert self.batch().predict.batch == batch
        while self.readers[-1] is self.thread:
            self.peer.ask([1.0], batch=3)
            assert self.batch().predict.batch == 3

    def look(self):
        """Has the link's thread look now, after a batch that the main thread has read, and waits until it has."""
        self.wakeup.wake()
        while self.reader._busy:
            time.sleep(0.001)

    def answered(self, nonce):
        self.peer.send(Kind.PING, struct.pack("<Q", nonce))
        return struct.unpack("<Q", self.peer.expect(Kind.PONG, skip=(Kind.PING,))) == (nonce,)


@pytest.fixture
def rig():
    rig = Rig()
    rig.thread.start()
    yield rig
    rig.peer.sock.close()
    rig.wakeup.wake()
    rig.thread.join(PATIENCE)
    assert not rig.thread.is_alive()
    rig.connection.close()


def test_the_main_thread_comes_to_read_for_itself(rig):
    rig.take_lock()
    assert rig.readers[-1] is threading.current_thread()


def test_the_links_thread_reads_while_the_main_thread_computes(rig):
    assert rig.answered(1)  # while it loads
    rig.take_lock()
    assert rig.answered(2)
    rig.peer.ask([1.0], batch=7)
    assert rig.answered(3)  # so the batch is there
    assert rig.readers[-1] is rig.thread
    assert rig.batch().predict.batch == 7
    rig.take_lock()


def test_the_links_thread_leaves_the_turn_to_a_main_thread_that_reads_between_two_looks(rig, monkeypatch):
    monkeypatch.setattr("topsail.container.reader._LOOK", 10 * PATIENCE)
    rig.take_lock()
    rig.readers.clear()
    for batch in range(20):
        rig.peer.ask([1.0], batch=batch)
        assert rig.batch().predict.batch == batch
        rig.look()
    assert set(rig.readers) == {threading.current_thread()}


@pytest.mark.bars
def test_how_often_the_links_thread_looks(rig, monkeypatch):
    monkeypatch.setattr("topsail.container.reader._LOOK", 0.1)
    rig.take_lock()
    rig.readers.clear()
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        rig.peer.ask([1.0], batch=4)
        assert rig.batch().predict.batch == 4
        time.sleep(0.002)  # a model computes
    assert set(rig.readers) == {threading.current_thread()}


def test_the_lock_is_never_free_while_the_main_thread_waits(rig, monkeypatch):
    monkeypatch.setattr("topsail.container.reader._LOOK", 10 * PATIENCE)
    ponged = []

    def talk():
        while not rig.reader._wanted:
            time.sleep(0.001)
        ponged.append(rig.answered(1))  # no batch: only the lock comes
        rig.peer.ask([1.0], batch=5)

    sidecar = threading.Thread(target=talk)
    sidecar.start()
    assert rig.batch().predict.batch == 5
    sidecar.join()
    assert ponged == [True]
    assert rig.readers == [threading.current_thread()]


def test_a_main_thread_that_never_waits_never_holds_the_lock(rig):
    """As that of a host, which waits for its inbox."""
    for batch in range(5):
        rig.peer.ask([1.0], batch=batch)
        assert rig.inbox.wait(PATIENCE).predict.batch == batch
    assert set(rig.readers) == {rig.thread}


def test_no_time_to_wait_is_enough_to_read_what_is_there(rig):
    rig.take_lock()
    rig.peer.ask([1.0], batch=9)
    assert rig.reader.wait(0).predict.batch == 9
    assert rig.reader.wait(0) is None


def test_each_thread_is_woken(rig):
    for holder in ("link's", "main"):
        threading.Timer(0.01, rig.inbox.wake).start()
        began = time.monotonic()
        while time.monotonic() - began < 0.01 or not (woken := rig.reader.wait(PATIENCE) is None):
            pass
        assert woken and time.monotonic() - began < PATIENCE / 2, holder
        rig.take_lock()


def test_the_links_thread_is_woken_while_the_main_thread_reads(rig):
    rig.take_lock()
    threading.Timer(0.01, rig.wakeup.wake).start()
    assert rig.reader.wait(0.3) is None
    assert rig.woken.wait(PATIENCE)


def test_what_the_main_thread_meets_ends_the_links_reading(rig):
    rig.take_lock()
    rig.peer.send(Kind.BYE, b"\3\0end")
    until = time.monotonic() + PATIENCE
    while rig.thread.is_alive() and time.monotonic() < until:
        assert rig.reader.wait(0.01) is None
    assert isinstance(rig.end, session.ByeReceived)
    assert rig.reader.wait(0) is None  # from the inbox, as there is no connection


def test_many_batches_through_changing_turns(rig, monkeypatch):
    monkeypatch.setattr("topsail.container.reader._LOOK", 0.0005)
    for batch in range(2000):
        rig.peer.ask([1.0], batch=batch)
        assert rig.batch().predict.batch == batch
        if batch % 3 == 0:
            time.sleep(0.0005)  # a model computes
    assert len(set(rig.readers)) == 2
