"""What comes of the parts that a model yields, live and in order, and of their whole."""

import asyncio
import threading

import pytest
from here import Here, Sidecar, passed

from topsail import Drop, Error, Output
from topsail.container.input_type import DOUBLES
from topsail.protocol.constants import Status


class Gates:
    """Two generators that go on when they may."""

    def __init__(self):
        self.go_on = threading.Event()

    def predict(self, x):
        yield f"{x} "
        assert passed(self.go_on)
        yield "there"


class AsyncGates(Gates):
    async def predict(self, x):
        yield f"{x} "
        assert passed(self.go_on)  # which blocks the loop, and yet the first part must be sent
        yield "there"


@pytest.mark.parametrize("kind", [Gates, AsyncGates])
def test_a_part_is_sent_before_the_generator_goes_on(kind):
    model = kind()
    with Here(model) as here, here.accept() as peer:
        peer.query("hello")
        assert peer.part() == "hello "
        model.go_on.set()
        assert peer.part() == "there"
        assert peer.last() == "hello there"


@pytest.mark.parametrize("kind", [Gates, AsyncGates])
def test_who_wants_no_parts_gets_the_whole(kind):
    model = kind()
    model.go_on.set()
    with Here(model) as here, here.accept() as peer:
        peer.query("hello", parts=False)
        assert peer.last() == "hello there"


def test_parts_of_tasks_that_are_ready_together():
    """A step of a model has a part for each query."""
    count = 5
    waiting = []

    async def predict(x):
        for i in range(3):
            step = asyncio.get_running_loop().create_future()
            waiting.append(step)
            if len(waiting) == count:
                due, waiting[:] = list(waiting), []
                for other in due:
                    other.set_result(None)
            await step
            yield f"{x}{i}"

    with Here(predict) as here, here.accept() as peer:
        for batch in range(count):
            peer.query("p", batch=batch)
        got = {batch: [] for batch in range(count)}
        for _ in range(count * 4):
            entry = peer.came()
            got[peer.batch].append(str(entry.values[0].data, "utf-8"))
        assert got == {batch: ["p0", "p1", "p2", "p0p1p2"] for batch in range(count)}


def yielding(*parts):
    def predict(x):
        yield from parts

    return predict


def asynchronous(*parts):
    async def predict(x):
        for part in parts:
            yield part

    return predict


async def coroutine(x):
    await asyncio.sleep(0)
    return f"{x}!"


def returning(x):
    yield "a"
    yield "b"
    return {"tokens": 2}


BIG = "x" * 600_000


@pytest.mark.parametrize("make", [yielding, asynchronous])
@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["a", "b", "c"], "abc"),
        ([], ""),
        ([{"a": 1}], '{"a":1}'),
        ([{"a": 1}, "b", None], '[{"a":1},"b",null]'),
        ([BIG, BIG], None),
        ([{"a": 1}, Output("b")], None),  # which cannot be joined
    ],
    ids=["texts", "none", "one", "list", "too large", "apart"],
)
def test_the_whole(make, parts, whole):
    with Here(make(*parts)) as here, here.accept() as peer:
        peer.query("x")
        *got, last = peer.all()
        assert len(got) == len(parts)
        assert last == whole
        peer.query("x", parts=False)
        without = peer.last()
        if parts == [BIG, BIG]:
            assert without[0] == Status.MODEL_ERROR
            assert without[1].startswith("OverflowError: the output is too large: 2 parts have more than 1048576 bytes")
        elif whole is None:
            assert without == (
                Status.MODEL_ERROR,
                "TypeError: a Output cannot be an output: return a number, text, an array, or what JSON can say",
            )
        else:
            assert without == whole


def test_what_a_generator_returns_is_the_whole():
    with Here(returning) as here, here.accept() as peer:
        peer.query("x")
        assert peer.all() == ["a", "b", '{"tokens":2}']


def test_a_coroutine_answers_at_once():
    with Here(coroutine) as here, here.accept() as peer:
        peer.query("hi")
        assert peer.all() == ["hi!"]


def test_an_iterator_that_is_returned_is_passed_on():
    class Model:
        concurrent = True

        def predict(self, x):
            return map(str.upper, x)

    async def predict(x):
        return asynchronous("a", "b")(x)

    for model, parts in ((Model, ["A", "B", "AB"]), (predict, ["a", "b", "ab"])):
        with Here(model) as here, here.accept() as peer:
            peer.query("ab")
            assert peer.all() == parts


def test_the_models_own_way_to_join():
    class Model:
        def predict(self, x):
            yield 1
            yield 2

        def join_parts(self, parts):
            return f"the sum is {sum(parts)}"

    with Here(Model) as here, here.accept() as peer:
        peer.query("x", parts=False)
        assert peer.last() == "the sum is 3"


def test_hooks_are_for_parts_too():
    class Model:
        def decode(self, x):
            return x.upper()

        def predict(self, x):
            yield x
            yield "b"

        def encode(self, part):
            return f"<{part}>"

    with Here(Model) as here, here.accept() as peer:
        peer.query("a")
        assert peer.all() == ["<A>", "<b>", "<Ab>"]


def failing(make):
    """Each way to end behind a part."""

    def raising(x):
        yield "a"
        raise make()

    def placing(x):
        yield "a"
        yield make()
        yield "never"

    async def raising_async(x):
        yield "a"
        raise make()

    return raising, placing, raising_async


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize(
    ("make", "ends"),
    [
        (lambda: ValueError("bad"), (Status.MODEL_ERROR, "ValueError: bad")),
        (lambda: Error("dark"), (Status.MODEL_ERROR, "Error: dark")),
        (lambda: Drop("blank"), (Status.DROPPED, "blank")),
    ],
)
def test_failures_behind_parts(make, ends, which):
    with Here(failing(make)[which]) as here, here.accept() as peer:
        peer.query("x")
        assert peer.all() == ["a", ends]
        peer.query("x", batch=2, parts=False)
        assert peer.last() == ends


def test_a_part_that_cannot_be_sent():
    with Here(yielding("a", b"raw")) as here, here.accept() as peer:
        peer.query("x")
        a, (status, message) = peer.all()
        assert a == "a" and status == Status.MODEL_ERROR and message.startswith("TypeError: bytes cannot be an output")


def test_a_part_above_the_largest_frame():
    with Here(yielding("a", "x" * 70_000)) as here, Sidecar(here.listener.accept()[0]) as peer:
        peer.greet(features=16, max_frame=65536)
        peer.wait_ready()
        peer.query("x")
        assert peer.all() == ["a", (Status.MODEL_ERROR, "OverflowError: a part of 70010 bytes cannot be sent")]


def test_bad_inputs_and_late_ones():
    with Here(yielding("a")) as here, here.accept() as peer:
        peer.query([1.0], kind=DOUBLES)
        assert peer.last()[0] == Status.BAD_INPUT
        peer.query("x", left=0)
        assert peer.last() == (Status.EXPIRED, "the time was up before the model could run")
        peer.query("x", left=60_000_000)
        assert peer.all() == ["a", "a"]
