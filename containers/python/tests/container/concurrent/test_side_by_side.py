"""Queries that run at the same time."""

import asyncio
import threading
from struct import pack

import pytest
from here import Here
from sidecar import PATIENCE
from watched import CANCELLED, AsyncGenerator, Coroutine, Function, Generator

from topsail.container.input_type import STRINGS
from topsail.container.loading import prepare
from topsail.container.settings import SettingsError
from topsail.protocol.constants import ANY_CONCURRENCY, Feature, Kind, Status

# What is announced.


@pytest.mark.parametrize(
    ("model", "concurrency", "announced"),
    [
        (Generator, None, 64),
        (Generator, 3, 3),
        (AsyncGenerator, None, ANY_CONCURRENCY),
        (AsyncGenerator, 300, 300),
        (Coroutine, None, ANY_CONCURRENCY),
        (Function, None, 4),
        (Function, 2, 2),
        (lambda xs: xs, None, 0),
    ],
)
def test_the_concurrency_is_announced(model, concurrency, announced):
    with Here(model, concurrency=concurrency) as here, here.accept() as peer:
        assert peer.hello.features & Feature.PARTS
        assert peer.ready_with.concurrency == announced


def batched(x):
    yield x


batched.batched = True


def many(x, sessions):
    yield x


class Negative:
    concurrent = -1

    def predict(self, x):
        return x


@pytest.mark.parametrize(
    ("model", "concurrency", "says"),
    [
        (batched, None, "takes one input at a time .* which batched = True contradicts"),
        (many, None, "call its parameter session, not sessions"),
        (lambda xs: xs, 4, "takes batches, one at a time, and concurrency= is for"),
        (Negative, None, "Negative has concurrency -1, which must be a number from 1 on"),
        (Generator, 0, "has concurrency 0, which must be"),
    ],
)
def test_settings_that_make_no_sense(model, concurrency, says):
    with pytest.raises(SettingsError, match=says):
        prepare(model, "strings", None, concurrency=concurrency)


# Side by side.


def both(parties):
    barrier = threading.Barrier(parties, timeout=PATIENCE)

    def generator(x):
        barrier.wait()
        yield x

    class Plain:
        concurrent = True

        def predict(self, x):
            barrier.wait()
            return x

    return generator, Plain()


@pytest.mark.parametrize("which", range(2))
def test_queries_on_threads_run_side_by_side(which):
    with Here(both(3)[which]) as here, here.accept() as peer:
        for batch in (1, 2, 3):
            peer.query(f"q{batch}", batch=batch, parts=False)
        assert {(peer.last(), peer.batch) for _ in range(3)} == {("q1", 1), ("q2", 2), ("q3", 3)}


def test_tasks_run_side_by_side():
    met = []
    all_met = asyncio.Event()

    async def predict(x):
        met.append(x)
        if len(met) == 3:
            all_met.set()
        await all_met.wait()
        return x

    with Here(predict) as here, here.accept() as peer:
        for batch in (1, 2, 3):
            peer.query(f"q{batch}", batch=batch)
        assert {(peer.last(), peer.batch) for _ in range(3)} == {("q1", 1), ("q2", 2), ("q3", 3)}


@pytest.mark.parametrize("kind", [Function, AsyncGenerator])
def test_no_more_run_than_are_allowed(kind):
    model = kind()
    with Here(model, concurrency=2) as here, here.accept() as peer:
        for batch in (1, 2, 3):
            peer.query(f"q{batch}", batch=batch, parts=False)
        for _ in range(2):
            assert model.places.acquire(timeout=PATIENCE)
        peer.has_answered_ping()
        assert model.calls == ["q1", "q2"]
        if kind is Function:
            model.go_on.set()
            assert {peer.last() for _ in range(3)} == {"q1", "q2", "q3"}
        else:
            peer.cancel(1)
            assert peer.last() == CANCELLED
            assert model.places.acquire(timeout=PATIENCE)
            assert model.calls == ["q1", "q2", "q3"]


def test_more_than_was_announced_are_an_error():
    model = Function()
    with Here(model, concurrency=1) as here, here.accept() as peer:
        for batch in range(1, 7):
            peer.query("x", batch=batch)
        assert "too many batches were sent at once" in peer.reason()
        model.go_on.set()


def test_a_batch_that_is_not_answered_yet_is_not_sent_again():
    model = Function()
    with Here(model) as here, here.accept() as peer:
        peer.query("x")
        peer.query("x")
        assert "predict batch at byte 0: 1 is not answered yet" in peer.reason()
        model.go_on.set()


def test_an_unknown_model():
    with Here(Generator()) as here, here.accept() as peer:
        peer.ask([1.0], model=9)
        assert peer.last() == (Status.UNKNOWN_MODEL, "this container announced no model 9")


# Sessions.


def in_session(x, session):
    yield f"{session.user}/{session.context}/{session.left}"


async def in_session_async(x, *, session):
    return f"{session.user}/{session.context}/{session.left}"


@pytest.mark.parametrize("predict", [in_session, in_session_async])
def test_the_session_of_a_query(predict):
    fields = b"\1" + pack("<I", 3) + b"ann" + b"\6" + pack("<I", 4) + b"home"
    with Here(predict) as here, here.accept() as peer:
        peer.query("x", parts=False, left=9_000_000, fields=fields)
        assert peer.last() == "ann/home/9.0"
    with pytest.raises(SettingsError, match="wants the sessions of its queries"):
        prepare(predict, "strings", None, session=False)


# Older sidecars.


@pytest.mark.parametrize("make_async", [False, True])
def test_a_sidecar_that_knows_no_parts_sends_batches(make_async):
    def predict(x):
        if x == "bad":
            raise ValueError("bad")
        yield x
        yield "!"

    async def predict_async(x):
        for part in predict(x):
            yield part

    with Here(predict_async if make_async else predict) as here, here.accept(features=Feature.STAGES) as peer:
        assert peer.ready_with.concurrency == 0
        assert peer.predict("a", "bad", "b", kind=STRINGS) == ["a!", (Status.MODEL_ERROR, "ValueError: bad"), "b!"]
        peer.send(Kind.CANCEL, pack("<QI", 1, 0))
        assert peer.predict("c", kind=STRINGS, left=0) == [
            (Status.EXPIRED, "the time was up before the model could run")
        ]
        peer.query("d")  # though it may not be asked for
        assert peer.last() == "d!"
