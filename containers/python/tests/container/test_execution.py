"""Which models take one input at a time, by their functions; and how they run without a sidecar."""

import json
import threading
from functools import partial

import pytest
from sidecar import PATIENCE

from topsail import BadInput, Drop, Pipeline, testing
from topsail.cli.commands import main
from topsail.container.concurrent import runner
from topsail.container.execution import Execution, execution_of
from topsail.container.loading import prepare
from topsail.protocol.constants import Status


def plain(x):
    return x


def generator(x):
    yield x
    yield "!"


async def coroutine(x):
    return x + "!"


async def async_generator(x):
    yield x
    yield "!"


class Callable:
    def __call__(self, x):
        yield x


class AsyncCallable:
    async def __call__(self, x):
        return x


class Methods:
    def plain(self, x):
        return x

    def generator(self, x):
        yield x

    @staticmethod
    async def coroutine(x):
        return x


@pytest.mark.parametrize(
    ("predict", "execution"),
    [
        (plain, Execution.BATCHES),
        (len, Execution.BATCHES),
        (generator, Execution.THREADS),
        (coroutine, Execution.EVENT_LOOP),
        (async_generator, Execution.EVENT_LOOP),
        (partial(partial(generator), x="a"), Execution.THREADS),
        (partial(async_generator), Execution.EVENT_LOOP),
        (Callable(), Execution.THREADS),
        (partial(Callable()), Execution.THREADS),
        (AsyncCallable(), Execution.EVENT_LOOP),
        (Methods().plain, Execution.BATCHES),
        (Methods().generator, Execution.THREADS),
        (Methods().coroutine, Execution.EVENT_LOOP),
    ],
)
def test_the_kind_of_function_says_it(predict, execution):
    assert execution_of(predict) is execution


def test_a_plain_function_says_it_by_an_attribute():
    assert execution_of(plain, concurrent=True) is Execution.THREADS
    assert execution_of(coroutine, concurrent=True) is Execution.EVENT_LOOP


# Without a sidecar.


@pytest.mark.parametrize("predict", [generator, coroutine, async_generator])
def test_a_test_of_ones_own_sees_the_whole(predict):
    assert [a.output for a in testing.run(predict, ["a", "b"], "strings")] == ["a!", "b!"]


def test_inputs_of_a_dry_run_run_side_by_side_and_fail_alone():
    barrier = threading.Barrier(4, timeout=PATIENCE)

    def predict(x):
        barrier.wait()
        if x == "drop":
            raise Drop("blank")
        if x == "fail":
            raise ValueError("bad")
        if x == "odd":
            raise BadInput("an odd text")
        yield x

    answers = testing.run(predict, ["drop", "fail", "odd", "a"], "strings")
    assert [(a.status, a.error or a.output) for a in answers] == [
        (Status.DROPPED, "blank"),
        (Status.MODEL_ERROR, "ValueError: bad"),
        (Status.BAD_INPUT, "an odd text"),
        (Status.OK, "a"),
    ]


def test_warm_up_and_exit_as_for_other_models():
    class Model:
        def warmup(self):
            return ["warm"]

        def predict(self, x):
            if x != "warm":
                raise SystemExit(3)
            yield x

    assert testing.run(Model, [], "strings") == []
    with pytest.raises(SystemExit):
        testing.run(Model, ["cold"], "strings")


def test_threads_and_loops_end_with_the_model(monkeypatch):
    monkeypatch.setattr(runner, "_PATIENCE", PATIENCE)
    before = threading.active_count()
    for predict in (generator, coroutine):
        assert prepare(predict, "strings", None).teardown() is None  # of one that had no query
        testing.run(predict, ["a"], "strings")
    assert threading.active_count() == before


def test_a_stage_of_a_pipeline_takes_lists_of_one():
    p = Pipeline()
    p.add(coroutine)
    p.add(generator)
    assert p.run_local(["a", "b"]) == ["a!!", "b!!"]


def test_check_and_bench(tmp_path, capsys):
    file = tmp_path / "streaming.py"
    file.write_text("def predict(x):\n    yield x\n    yield '!'\n")
    words = [f"{file}:predict", "--input-type", "strings", "--example", '"hi"']
    assert main(["check", *words]) == 0
    assert "string 'hi!'" in capsys.readouterr().out
    assert main(["bench", *words, "--max", "2", "--seconds", "0.01", "--json"]) == 0
    assert [p["size"] for p in json.loads(capsys.readouterr().out)] == [1, 2]
