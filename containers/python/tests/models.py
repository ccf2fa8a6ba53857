"""The models of the container tests. They meet the test in a folder: a file says that a point was reached or passed."""

import ctypes
import multiprocessing
import os
import time
from pathlib import Path

import topsail

FOLDER = Path(os.environ.get("TEST_FOLDER", "."))


def reach(name):
    (FOLDER / name).touch()


def wait_for(name):
    until = time.monotonic() + 60
    while not (FOLDER / name).exists():
        if time.monotonic() > until:
            raise TimeoutError(name)
        time.sleep(0.001)


if gate := os.environ.get("TEST_IMPORT"):
    wait_for(gate)


def first(xs):
    return [float(x[0]) for x in xs]


class Many:
    """Does what the first number of its inputs says."""

    def __init__(self):
        self.calls = topsail.counter("calls", "Calls of predict.", kind="test")
        self.sizes = topsail.histogram("sizes", buckets=[1, 10])

    def predict(self, xs):
        self.calls.inc()
        self.sizes.observe(len(xs))
        what = [int(x[0]) for x in xs]
        if 100 in what:
            raise ValueError("100 is too much")
        if 200 in what:
            return first(xs)[1:]
        if 300 in what:
            return {"not": "a list"}
        return [self.one(w, x) for w, x in zip(what, xs, strict=True)]

    def one(self, what, x):
        if what == 400:
            return topsail.Error("no such thing")
        if what == 500:
            return b"raw"
        if what == 600:
            return topsail.Output("sure", confidence=0.5)
        if what == 700:
            print("to stdout")
        return float(x[0])


class Gated:
    """Waits in predict until it may go on, whenever the input is negative."""

    def predict(self, xs):
        for x in xs:
            if x[0] < 0:
                reach(f"in{int(x[0])}")
                wait_for(f"out{int(x[0])}")
        return first(xs)

    def teardown(self):
        reach("teardown")


def streamed(x):
    """Yields a part, and another one when it may."""
    try:
        yield "first "
        wait_for("go on")
        yield "second"
    finally:
        reach("closed")


class Online(Gated):
    """Answers with the last label that it was told for an input, and lets a test into the middle of its lessons."""

    def __init__(self):
        self.labels = {}
        self.busy = False

    def predict(self, xs):
        assert not self.busy
        super().predict(xs)
        return [self.labels.get(float(x[0]), 0.0) for x in xs]

    def correct(self, pairs, user):
        self.busy = True
        try:
            for x, y in pairs:
                self.learn(float(x[0]), y, user)
        finally:
            self.busy = False

    def learn(self, x, y, user):
        if y == "raise":
            raise ValueError(f"{user} is wrong")
        if y == "wait":
            reach("learning")
            wait_for("learned")
        self.labels[x] = y

    def accuracy(self):
        return len(self.labels) / 4


class Slow:
    """Takes its time to load, and says how often it did."""

    input_length = 2

    def __init__(self):
        reach("made")

    def setup(self):
        reach("loading")
        wait_for("loaded")
        with (FOLDER / "loads").open("a") as f:
            f.write("x")

    def warmup(self):
        reach("warming")
        return [[1.0, 2.0]]

    def predict(self, xs):
        return first(xs)


class Broken:
    def setup(self):
        raise OSError("the weights are not there")

    predict = staticmethod(first)


class ColdBroken:
    def warmup(self):
        return [[1.0], [2.0]]

    def predict(self, xs):
        return [1.0, topsail.Error("cold")][: len(xs)]


class Ints:
    input_type = "ints"

    def predict(self, xs):
        return [int(sum(x)) for x in xs]


class Busy:
    """Is in C until it may go on, with the interpreter's lock released and signals not looked at."""

    def predict(self, xs):
        reach("computing")
        wait = f"for _ in $(seq 6000); do [ -e '{FOLDER}/computed' ] && exit; sleep 0.01; done"
        ctypes.CDLL(None).system(wait.encode())
        return first(xs)


class Forking:
    """Has a helper process, which it stops as multiprocessing.Pool stops its own: with SIGTERM."""

    def predict(self, xs):
        helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        helper.start()
        helper.terminate()
        helper.join()
        return [helper.exitcode] * len(xs)


def leave(xs):
    raise SystemExit(7)


NUMBER = 5
