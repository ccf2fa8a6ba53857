"""The turns of the two threads that read one connection, over a socket pair, with a thread for the link's."""

import socket
import struct
import threading
import time

import pytest
from sidecar import PATIENCE, Peer

from topsail import conversation
from topsail.connection import Connection
from topsail.conversation import Conversation
from topsail.inbox import Inbox
from topsail.metrics import Registry
from topsail.reading import Reading
from topsail.reporter import Reporter
from topsail.waker import Waker
from topsail.wire.constants import Kind


class Rig:
    """The test is the main thread, and the sidecar."""

    def __init__(self):
        mine, theirs = socket.socketpair()
        self.connection = Connection(mine)
        self.connection.max_frame = 65536
        self.peer = Peer(theirs)
        self.inbox, self.waker = Inbox(), Waker()
        self.reading = Reading(self.inbox, self.waker)
        self.woken = threading.Event()
        self.readers = []  # the thread that put each batch into the inbox
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.end = None
        put = self.inbox.put
        self.inbox.put = lambda job: self.readers.append(threading.current_thread()) or put(job)

    def keep(self):
        talk = Conversation(self.connection, self.inbox, Reporter(Registry()))
        try:
            self.reading.keep(self.connection, talk, self.on_wake)
        except Exception as e:
            self.end = e

    def on_wake(self):
        self.waker.read()
        self.woken.set()

    def job(self):
        """The next batch; what only wakes is skipped."""
        until = time.monotonic() + PATIENCE
        while not (job := self.reading.wait(until - time.monotonic())):
            assert time.monotonic() < until
        return job

    def take_turn(self):
        """Has the main thread read for itself: the link's thread lets it when both meet."""
        for batch in (1, 2):
            self.peer.ask([1.0], batch=batch)
            assert self.job().batch.batch == batch
        while self.readers[-1] is self.thread:
            self.peer.ask([1.0], batch=3)
            assert self.job().batch.batch == 3

    def answered(self, nonce):
        self.peer.send(Kind.PING, struct.pack("<Q", nonce))
        return struct.unpack("<Q", self.peer.expect(Kind.PONG, skip=(Kind.PING,))) == (nonce,)


@pytest.fixture
def rig():
    rig = Rig()
    rig.thread.start()
    yield rig
    rig.peer.sock.close()
    rig.waker.wake()
    rig.thread.join(PATIENCE)
    assert not rig.thread.is_alive()
    rig.connection.close()


def test_the_main_thread_comes_to_read_for_itself(rig):
    rig.take_turn()
    assert rig.readers[-1] is threading.current_thread()


def test_the_links_thread_reads_while_the_main_thread_computes(rig):
    assert rig.answered(1)  # while it loads
    rig.take_turn()
    assert rig.answered(2)
    rig.peer.ask([1.0], batch=7)
    assert rig.answered(3)  # so the batch is there
    assert rig.readers[-1] is rig.thread
    assert rig.job().batch.batch == 7
    rig.take_turn()


def test_the_links_thread_leaves_the_turn_to_a_main_thread_that_reads_now_and_then(rig, monkeypatch):
    monkeypatch.setattr("topsail.reading._LOOK", 0.1)
    for _ in range(20):  # attempts: a busy machine may keep the main thread from reading for as long as a look
        rig.take_turn()
        began = last = time.monotonic()
        longest = 0.0
        rig.readers.clear()
        while last - began < 0.5:
            rig.peer.ask([1.0], batch=4)
            assert rig.job().batch.batch == 4
            time.sleep(0.002)  # a model computes
            longest = max(longest, time.monotonic() - last)
            last = time.monotonic()
        if longest < 0.05:
            assert set(rig.readers) == {threading.current_thread()}
            return
    raise AssertionError("this machine is too busy to tell")


def test_the_turn_is_never_nobodys_while_the_main_thread_waits(rig, monkeypatch):
    monkeypatch.setattr("topsail.reading._LOOK", 10 * PATIENCE)
    ponged = []

    def talk():
        while not rig.reading._wanted:
            time.sleep(0.001)
        ponged.append(rig.answered(1))  # no batch: only the turn comes
        rig.peer.ask([1.0], batch=5)

    sidecar = threading.Thread(target=talk)
    sidecar.start()
    assert rig.job().batch.batch == 5
    sidecar.join()
    assert ponged == [True]
    assert rig.readers == [threading.current_thread()]


def test_a_main_thread_that_never_waits_never_has_the_turn(rig):
    """As that of a host, which waits for its inbox."""
    for batch in range(5):
        rig.peer.ask([1.0], batch=batch)
        assert rig.inbox.wait(PATIENCE).batch.batch == batch
    assert set(rig.readers) == {rig.thread}


def test_no_time_to_wait_is_enough_to_read_what_is_there(rig):
    rig.take_turn()
    rig.peer.ask([1.0], batch=9)
    assert rig.reading.wait(0).batch.batch == 9
    assert rig.reading.wait(0) is None


def test_it_is_woken_in_both_turns(rig):
    for turn in ("link's", "main"):
        threading.Timer(0.01, rig.inbox.wake).start()
        began = time.monotonic()
        while time.monotonic() - began < 0.01 or not (woken := rig.reading.wait(PATIENCE) is None):
            pass
        assert woken and time.monotonic() - began < PATIENCE / 2, turn
        rig.take_turn()


def test_the_links_thread_is_woken_while_the_main_thread_reads(rig):
    rig.take_turn()
    threading.Timer(0.01, rig.waker.wake).start()
    assert rig.reading.wait(0.3) is None
    assert rig.woken.wait(PATIENCE)


def test_what_the_main_thread_meets_ends_the_links_reading(rig):
    rig.take_turn()
    rig.peer.send(Kind.BYE, b"\3\0end")
    until = time.monotonic() + PATIENCE
    while rig.thread.is_alive() and time.monotonic() < until:
        assert rig.reading.wait(0.01) is None
    assert isinstance(rig.end, conversation.Left)
    assert rig.reading.wait(0) is None  # from the inbox, as there is no connection


def test_many_batches_through_changing_turns(rig, monkeypatch):
    monkeypatch.setattr("topsail.reading._LOOK", 0.0005)
    for batch in range(2000):
        rig.peer.ask([1.0], batch=batch)
        assert rig.job().batch.batch == batch
        if batch % 3 == 0:
            time.sleep(0.0005)  # a model computes
    assert len(set(rig.readers)) == 2
