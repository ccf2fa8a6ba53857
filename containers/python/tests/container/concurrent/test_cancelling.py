"""How queries that run at the same time are cancelled."""

import asyncio
import threading

import pytest
from here import Here, passed
from sidecar import PATIENCE, quiet
from watched import CANCELLED, AsyncGenerator, Coroutine, Function, Generator, Yielding

from topsail.container.concurrent import threads
from topsail.protocol.constants import Status


@pytest.mark.parametrize(
    ("kind", "sees", "parts"),
    [
        (Generator, GeneratorExit, 1),
        (AsyncGenerator, asyncio.CancelledError, 1),
        (Coroutine, asyncio.CancelledError, 0),
    ],
)
@pytest.mark.parametrize("index", [0, 0xFFFFFFFF])
def test_a_model_sees_that_it_is_cancelled(kind, sees, parts, index):
    model = kind()
    with Here(model) as here, here.accept() as peer:
        peer.query("x")
        assert [peer.part() for _ in range(parts)] == ["a"] * parts
        assert passed(model.begun)
        peer.cancel(index=5)  # which there is not
        peer.cancel(batch=9)
        peer.cancel(index=index)
        assert peer.last() == CANCELLED
        model.go_on.set()
        assert passed(model.ended)
        assert model.saw is sees
        peer.cancel()
        peer.has_answered_ping()
        assert quiet(peer)


def test_a_generator_that_never_waits_is_cancelled_where_it_yields():
    model = Yielding()
    with Here(model) as here, here.accept() as peer:
        peer.query("x", parts=False)
        assert passed(model.begun)
        peer.cancel()
        assert peer.last() == CANCELLED
        assert passed(model.ended)
        assert model.saw is asyncio.CancelledError


def test_a_function_that_is_cancelled_answers_nothing():
    model = Function()
    with Here(model, concurrency=1) as here, here.accept() as peer:
        peer.query("old")
        assert passed(model.begun)
        peer.cancel()
        assert peer.last() == CANCELLED
        model.go_on.set()
        peer.query("new", batch=2)
        assert (peer.last(), peer.batch) == ("new", 2)


@pytest.mark.parametrize("kind", [Function, AsyncGenerator])
def test_a_query_that_waits_is_dropped(kind):
    model = kind()
    with Here(model, concurrency=1) as here, here.accept() as peer:
        peer.query("runs", parts=False)
        assert model.places.acquire(timeout=PATIENCE)
        peer.query("waits", batch=2)
        peer.cancel(2)
        assert (peer.last(), peer.batch) == (CANCELLED, 2)
        peer.query("last", batch=3)
        model.go_on.set()
        peer.cancel(1)
        peer.came()
        assert peer.batch == 1 and model.places.acquire(timeout=PATIENCE)
        assert model.calls == ["runs", "last"]


def test_what_waits_for_threads_that_all_hang_is_not_answered(monkeypatch):
    monkeypatch.setattr(threads, "_HANGS", 0.0)
    model = Function()
    with Here(model, concurrency=1) as here, here.accept() as peer:
        peer.query("hangs")
        assert passed(model.begun)
        peer.cancel()
        assert peer.last() == CANCELLED
        peer.query("waits", batch=2)
        peer.cancel(2)
        peer.has_answered_ping()
        assert quiet(peer)  # so that the sidecar takes the container for one that has hung
        model.go_on.set()
        assert peer.last() == "waits"


def test_nothing_is_sent_after_the_cancellation_of_a_generator():
    gate, closed = threading.Event(), threading.Event()

    class Stubborn:
        def predict(self, x):
            try:
                yield "a"
                assert passed(gate)
                yield "b"
            except GeneratorExit:
                closed.set()
                yield "not yet"

    with Here(Stubborn, concurrency=1) as here, here.accept() as peer:
        peer.query("x")
        assert peer.part() == "a"
        peer.cancel()
        assert peer.last() == CANCELLED
        gate.set()
        assert passed(closed)
        peer.query("x", batch=2)
        assert (peer.part(), peer.batch) == ("a", 2)  # and the thread is free again
        peer.cancel(2)


def test_nothing_is_sent_after_the_cancellation_of_a_task():
    begun, ended = threading.Event(), threading.Event()

    async def predict(x):
        try:
            begun.set()
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            yield "not yet"
            yield "never"
        finally:
            ended.set()

    with Here(predict) as here, here.accept() as peer:
        peer.query("x")
        assert passed(begun)
        peer.cancel()
        assert peer.last() == CANCELLED
        assert passed(ended)
        peer.has_answered_ping()
        assert quiet(peer)


@pytest.mark.parametrize("kind", [Generator, AsyncGenerator, Coroutine])
def test_a_lost_connection_cancels_its_queries(kind):
    model = kind()
    with Here(model) as here:
        with here.accept() as peer:
            peer.query("x")
            assert passed(model.begun)
        model.go_on.set()
        assert passed(model.ended)
        with here.accept() as peer:  # and another one is as good
            assert peer.ready_with.concurrency


def test_a_model_that_cancels_itself_fails():
    async def predict(x):
        raise asyncio.CancelledError("on its own")

    with Here(predict) as here, here.accept() as peer:
        peer.query("x")
        assert peer.last() == (Status.MODEL_ERROR, "CancelledError: on its own")
