"""A batch on a model, whatever the model does: each input gets one answer."""

import logging
import time

import pytest
from clock import Clock

from topsail import Error, Output, testing
from topsail.container.dry_run import dry_run, encode, read
from topsail.container.input_type import DOUBLES
from topsail.container.model import Model
from topsail.container.runner import Runner
from topsail.optional import numpy
from topsail.protocol import predict
from topsail.protocol.constants import NO_DEADLINE
from topsail.protocol.predict import Input
from topsail.testing import Status


def first(xs):
    return [float(x[0]) for x in xs]


def ask(served, inputs, **options):
    return testing.run(served, inputs, "doubles", **options)


def outputs(answers):
    return [a.error if a.error is not None else a.output for a in answers]


def test_a_function():
    assert outputs(ask(first, [[1.0], [2.0, 9.0], [3.0]])) == [1.0, 2.0, 3.0]


def test_an_output_with_all_that_belongs_to_it():
    [answer] = ask(lambda xs: [Output("A", confidence=0.25, qualifiers={"p": [0.75, 0.25], "n": 2})], [[1.0]])
    assert (answer.output, answer.confidence, answer.qualifiers) == ("A", 0.25, {"p": [0.75, 0.25], "n": 2})
    assert answer.status == Status.OK


class Hooked:
    input_type = "strings"

    def __init__(self):
        self.calls = []

    def setup(self):
        self.calls.append("setup")

    def warmup(self):
        return ["1"]

    def decode(self, text):
        return int(text)

    def predict(self, numbers):
        self.calls.append(f"predict {numbers}")
        return [n + 1 for n in numbers]

    def encode(self, number):
        return {"next": 10 // number}

    def teardown(self):
        self.calls.append("teardown")


def test_hooks_run_in_order():
    model = Hooked()
    assert outputs(testing.run(model, ["4", "9"])) == [{"next": 2}, {"next": 1}]
    assert model.calls == ["setup", "predict [1]", "predict [4, 9]", "teardown"]


def test_a_class_is_made_an_object():
    assert outputs(testing.run(Hooked, ["4"])) == [{"next": 2}]


def test_a_failing_decode_or_encode_fails_alone():
    answers = testing.run(Hooked, ["4", "four", "-1"])
    assert outputs(answers) == [
        {"next": 2},
        "ValueError: invalid literal for int() with base 10: 'four'",
        "ZeroDivisionError: integer division or modulo by zero",
    ]
    assert [a.status for a in answers] == [Status.OK, Status.BAD_INPUT, Status.MODEL_ERROR]


def test_errors_in_places():
    answers = ask(lambda xs: [Error("too dark"), KeyError("k"), 3], [[1.0]] * 3)
    assert outputs(answers) == ["Error: too dark", "KeyError: 'k'", 3]
    assert answers[0].status == Status.MODEL_ERROR


def test_an_output_that_cannot_be_sent_fails_alone():
    [bad, good] = ask(lambda xs: [b"raw", 1], [[1.0]] * 2)
    assert bad.error.startswith("TypeError: bytes cannot be an output")
    assert good.output == 1


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ([1, 2, 3], "ValueError: predict returned 3 outputs for 2 inputs"),
        ([], "ValueError: predict returned 0 outputs for 2 inputs"),
        (None, "TypeError: predict returned a NoneType, not a list of 2 outputs"),
        ("ab", "TypeError: predict returned a str, not a list of 2 outputs"),
        ({0: 1, 1: 2}, "TypeError: predict returned a dict, not a list of 2 outputs"),
        (range(2), "TypeError: predict returned a range, not a list of 2 outputs"),
    ],
)
def test_what_is_not_a_list_of_the_same_length_is_everyones_error(returned, says):
    answers = ask(lambda xs: returned, [[1.0]] * 2)
    assert outputs(answers) == [says, says]
    assert {a.status for a in answers} == {Status.MODEL_ERROR}


def test_a_tuple_is_a_list():
    assert outputs(ask(lambda xs: (1, 2), [[1.0]] * 2)) == [1, 2]


if numpy:

    def test_an_array_with_a_row_per_input_is_a_list():
        assert outputs(ask(lambda xs: numpy.stack(xs) * 2, [[1.0, 2.0], [3.0, 4.0]])) == [[2.0, 4.0], [6.0, 8.0]]
        assert outputs(ask(lambda xs: numpy.stack(xs).sum(axis=1), [[1.0, 2.0], [3.0, 4.0]])) == [3.0, 7.0]

    def test_an_array_without_rows_is_not():
        [answer] = ask(lambda xs: numpy.float64(3) * numpy.ones(()), [[1.0]])
        assert answer.error.startswith("TypeError: predict returned a")


class Fussy:
    """Fails for every batch that holds a negative number, and counts its calls."""

    def __init__(self):
        self.calls = []

    def predict(self, xs):
        self.calls.append(len(xs))
        if any(x[0] < 0 for x in xs):
            raise ValueError("negative")
        return first(xs)


def test_one_bad_input_fails_alone():
    model = Fussy()
    assert outputs(ask(model, [[1.0], [-1.0], [2.0]])) == [1.0, "ValueError: negative", 2.0]
    assert model.calls == [3, 1, 1, 1]


def test_a_batch_of_one_is_not_tried_twice():
    model = Fussy()
    assert outputs(ask(model, [[-1.0]])) == ["ValueError: negative"]
    assert model.calls == [1]


def test_retrying_can_be_turned_off():
    model = Fussy()
    assert outputs(ask(model, [[1.0], [-1.0]], retry_singly=False)) == ["ValueError: negative"] * 2
    assert model.calls == [2]


def test_retrying_ends_with_the_deadlines(monkeypatch):
    clock, calls = Clock(), []
    monkeypatch.setattr("topsail.container.runner.time", clock)

    def slow(xs):
        calls.append(len(xs))
        clock.now += 1.5
        raise ValueError("too bad")

    runner = Runner(Model(slow), DOUBLES)
    values = [DOUBLES.value([1.0])]
    lefts = [1_000_000, NO_DEADLINE]
    batch = predict.decode(memoryview(predict.encode(1, 1, [Input(left, values) for left in lefts])))
    late, untimed = read(runner.run(batch, clock.now, 1 << 20))
    assert late.status == Status.EXPIRED
    assert untimed.error == "ValueError: too bad"
    assert calls == [2, 1]


def test_a_wrong_length_in_a_single_retry_is_told():
    def odd(xs):
        if len(xs) > 1:
            raise ValueError("only one")
        return []

    assert outputs(ask(odd, [[1.0]] * 2)) == ["ValueError: predict returned 0 outputs for 1 inputs"] * 2


def test_expired_inputs_are_not_run():
    seen = []

    def spy(xs):
        seen.extend(first(xs))
        return first(xs)

    runner = Runner(Model(spy), DOUBLES)
    inputs = [Input(1000, [DOUBLES.value([1.0])]), Input(NO_DEADLINE, [DOUBLES.value([2.0])])]
    batch = predict.decode(memoryview(predict.encode(1, 1, inputs)))
    late, good = read(runner.run(batch, time.monotonic() - 0.002, 1 << 20))
    assert late.status == Status.EXPIRED
    assert good.output == 2.0
    assert seen == [2.0]


def test_the_model_is_not_called_for_nothing():
    calls = []
    runner = Runner(Model(calls.append), DOUBLES)
    [answer] = dry_run(runner, [[1.0]], left=0)
    assert answer.status == Status.EXPIRED
    assert calls == []


def test_a_model_may_take_its_list_apart():
    def greedy(xs):
        first_value = xs.pop()[0]
        if xs:
            raise ValueError("more than one")
        return [first_value]

    assert outputs(ask(greedy, [[1.0], [2.0]])) == [1.0, 2.0]


def test_a_wrong_input_fails_alone():
    answers = ask(first, [[1.0], [1.0, 2.0]], input_length=1)
    assert outputs(answers) == [1.0, "this model takes inputs of length 1, and got one of length 2"]
    assert answers[1].status == Status.BAD_INPUT


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_an_exception_that_cannot_be_printed_is_named():
    def broken(xs):
        raise Unprintable

    assert outputs(ask(broken, [[1.0]])) == ["Unprintable"]


def test_exit_ends_the_container():
    def leave(xs):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        ask(leave, [[1.0]])


def test_tracebacks_are_few(caplog):
    def broken(xs):
        raise ValueError("again")

    runner = Runner(Model(broken), DOUBLES)
    with caplog.at_level(logging.ERROR):
        for _ in range(100):
            dry_run(runner, [[1.0]] * 3)
    [record] = caplog.records
    assert record.getMessage() == "predict failed for 3 inputs"
    assert record.exc_info


def test_a_large_reply_goes_out_in_several_frames():
    runner = Runner(Model(lambda xs: ["x" * 30_000] * len(xs)), DOUBLES)
    batch = predict.decode(memoryview(encode(runner, [[1.0]] * 7)))
    frames = runner.run(batch, time.monotonic(), 65536)
    assert [a.output for a in read(frames)] == ["x" * 30_000] * 7
    sizes, flags, at = [], [], 0
    while at < len(frames):
        sizes.append(int.from_bytes(frames[at : at + 4], "little"))
        flags.append(frames[at + 5])
        at += 8 + sizes[-1]
    assert max(sizes) <= 65536
    assert flags == [0, 0, 0, 2]  # END once, at the end


def test_an_output_above_the_largest_frame_fails_alone():
    runner = Runner(Model(lambda xs: ["x" * 70_000, "y"]), DOUBLES)
    batch = predict.decode(memoryview(encode(runner, [[1.0]] * 2)))
    big, small = read(runner.run(batch, time.monotonic(), 65536))
    assert big.error.startswith("OverflowError: an output of 70010 bytes cannot be sent")
    assert small.output == "y"


def test_the_largest_output_that_fits():
    room = 65536 - 24 - 12 - 10  # the heads of the reply, the entry and the payload
    runner = Runner(Model(lambda xs: ["x" * room, "x" * (room + 1)]), DOUBLES)
    batch = predict.decode(memoryview(encode(runner, [[1.0]] * 2)))
    fits, does_not = read(runner.run(batch, time.monotonic(), 65536))
    assert len(fits.output) == room
    assert does_not.status == Status.MODEL_ERROR


def test_the_time_that_the_model_took_is_told(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("topsail.container.runner.time", clock)
    runner = Runner(Model(lambda xs: clock.sleep(0.25) or [1]), DOUBLES)
    batch = predict.decode(memoryview(encode(runner, [[1.0]])))
    frames = runner.run(batch, clock.now, 65536)
    assert int.from_bytes(frames[8 + 16 : 8 + 20], "little") == 250_000
