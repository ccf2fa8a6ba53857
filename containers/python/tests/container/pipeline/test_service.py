"""Pipelines inside one program: real processes, which import this file."""

import asyncio
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

import topsail
from topsail.container.pipeline.stage import PipelineError


def double(xs):
    return [2 * x for x in xs]


class Plus:
    def setup(self):
        self.one = 1

    def predict(self, xs):
        return [x + self.one for x in xs]


def sizes(xs):
    return [(x, len(xs)) for x in xs]


def where(xs):
    return [(x, os.getpid(), sorted(os.sched_getaffinity(0))) for x in xs]


def join(xs):
    return [(x["double"], x["Plus"]) for x in xs]


def judge(xs):
    """Ends some queries, and with -1 the whole process."""
    if -1 in xs:
        os.kill(os.getpid(), signal.SIGKILL)
    bad = {1: topsail.Error("odd"), 2: topsail.Drop("blank"), 3: topsail.BadInput("small"), 4: KeyError("four")}
    return [bad.get(x, x) for x in xs]


def slow(xs):
    time.sleep(0.2)
    return xs


def dies_once(xs):
    for x in xs:
        if not os.path.exists(x):
            open(x, "w").close()
            os._exit(3)
    return ["second" for x in xs]


class LoadsLong:
    def setup(self):
        time.sleep(60)

    def predict(self, xs):
        return xs


class Unloadable:
    def setup(self):
        raise OSError("there is no file net.bin")

    def predict(self, xs):
        return xs


def pipeline(*stages, **options):
    p = topsail.Pipeline()
    for stage in stages:
        p.add(stage, **options)
    return p


async def ask(p, inputs, **options):
    async with p.serve(**options) as service:
        return await asyncio.gather(*(service.predict(x) for x in inputs), return_exceptions=True)


def test_inputs_go_through_all_stages():
    p = topsail.Pipeline()
    p.add(double, workers=2, batch=8)
    p.add(Plus, after="input", batch="aimd")
    p.add(join, after=[double, Plus], batch="quantile")
    assert asyncio.run(ask(p, range(300), max_queue_size=16)) == [(2 * x, x + 1) for x in range(300)]


def test_values_arrive_as_they_left():
    row = np.arange(6, dtype="float32").reshape(2, 3)
    [text, array, other] = asyncio.run(ask(pipeline(slow, batch=8), ["ä", row, {"a": (1, None)}]))
    assert (text, other) == ("ä", {"a": (1, None)})
    assert array.dtype == "float32" and array.tolist() == row.tolist()


def test_batches_are_of_the_size_that_a_stage_takes():
    found = asyncio.run(ask(pipeline(sizes, batch=4, batch_delay=0.5), range(8)))
    assert found == [(x, 4) for x in range(8)]
    assert asyncio.run(ask(pipeline(sizes), range(3))) == [(x, 1) for x in range(3)]
    assert asyncio.run(ask(pipeline(sizes, batch=4, batch_pad=True), [1])) == [(1, 4)]


def test_processes_and_their_cpus():
    """The program runs on its own ones meanwhile, and its workers on any."""
    before = sorted(os.sched_getaffinity(0))

    async def run():
        async with pipeline(where, workers=2).serve(cpus=before[:1]) as service:
            assert sorted(os.sched_getaffinity(0)) == before[:1]
            return await asyncio.gather(*(service.predict(x) for x in range(20)))

    found = asyncio.run(run())
    assert sorted(os.sched_getaffinity(0)) == before
    assert {cpus == before for _, _, cpus in found} == {True}
    assert os.getpid() not in {pid for _, pid, _ in found}
    [(_, _, cpus)] = asyncio.run(ask(pipeline(where, cpus=before[-1:]), [1]))
    assert cpus == before[-1:]
    [(_, _, cpus)] = asyncio.run(ask(pipeline(where, cpus=before, cpus_per_worker=len(before)), [1]))
    assert cpus == before


def test_what_ends_a_query():
    """And no other of its batch."""
    found = asyncio.run(ask(pipeline(judge, double, batch=8), range(6)))
    assert [type(x) for x in found] == [int, topsail.Error, topsail.Drop, topsail.BadInput, topsail.Error, int]
    assert [str(x) for x in found[1:5]] == [
        "stage judge: Error: odd",
        "stage judge: blank",
        "stage judge: small",
        "stage judge: KeyError: 'four'",
    ]
    assert (found[0], found[5]) == (0, 10)


def test_a_worker_that_dies(tmp_path):
    """Its inputs fail, or are given to the next one, and another process takes its place."""

    async def run():
        async with pipeline(judge).serve() as service:
            with pytest.raises(topsail.StageError, match="stage judge: its worker judge/0 ended: killed by signal 9"):
                await service.predict(-1)
            assert await service.predict(7) == 7

    asyncio.run(run())
    mark = str(tmp_path / "died")
    assert asyncio.run(ask(pipeline(dies_once, idempotent=True), [mark])) == ["second"]


def test_a_worker_that_dies_before_a_full_queue(tmp_path):
    marks = [str(tmp_path / str(i)) for i in range(4)]
    p = pipeline(dies_once, idempotent=True)
    assert asyncio.run(ask(p, marks, max_queue_size=1)) == ["second"] * 4


def test_no_process_is_left():
    """Neither where a worker is being started again when the pipeline ends, nor where its start is not waited for."""

    async def dies():
        async with pipeline(judge).serve() as service:
            with pytest.raises(topsail.StageError):
                await service.predict(-1)
        with pytest.raises(topsail.StageError, match="the pipeline has ended"):
            await service.predict(1)

    async def hurries():
        await asyncio.wait_for(ask(pipeline(LoadsLong), [1]), 1)

    asyncio.run(dies())
    assert multiprocessing.active_children() == []
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(hurries())
    assert multiprocessing.active_children() == []


def test_a_stage_that_cannot_be_loaded():
    with pytest.raises(
        topsail.StageError, match=r"stage 'Unloadable' cannot be loaded: OSError: there is no file net.bin"
    ):
        asyncio.run(ask(pipeline(double, Unloadable), [1]))
    with pytest.raises(topsail.StageError, match=r"stage '<lambda>'|stage 'local'"):
        asyncio.run(ask(pipeline_of_local(), [1]))
    for options, says in [
        ({"max_queue_size": 0}, "max_queue_size must be at least 1"),
        ({"cpus": [4096]}, "there is no CPU 4096"),
        ({"cpus": ["a"]}, "is no whole number"),
    ]:
        with pytest.raises(PipelineError, match=says):
            pipeline(double).serve(**options)


def pipeline_of_local():
    def local(xs):
        return xs

    return pipeline(local)


def test_a_full_queue_and_the_end():
    """predict waits for room, and what is on its way when the pipeline ends fails."""

    async def run():
        async with pipeline(slow).serve(max_queue_size=1) as service:
            asked = [asyncio.create_task(service.predict(x)) for x in range(5)]
            assert await asked[0] == 0
            asked[1].cancel()
        return await asyncio.gather(*asked[2:], return_exceptions=True)

    assert {str(x) for x in asyncio.run(run())} == {"the pipeline has ended"}
