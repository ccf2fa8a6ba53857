"""The pipelines of the tests: `python pipelines.py NAME`. They meet the test in a folder, as models.py does."""

import contextlib
import os
import sys
import time

from models import reach, wait_for

import topsail
from topsail.container.pipeline import supervisor


class Scale:
    def predict(self, xs):
        return [x[0] * 2 for x in xs]


class Shift:
    def predict(self, xs):
        return [float(x + 3) for x in xs]


class Square:
    def predict(self, xs):
        return [int(x[0]) ** 2 for x in xs]


def scale_shift():
    p = topsail.Pipeline()
    p.add(Scale, workers=2, idempotent=True)
    p.add(Shift, batch=8)
    return p


class Odd:
    """Fails for a third of its inputs, drops another third, and kills its process for some."""

    def predict(self, xs):
        return [self.one(int(x[0])) for x in xs]

    def one(self, n):
        if n % 3 == 1:
            return topsail.Drop(f"{n} is dropped")
        if n % 3 == 2:
            raise ValueError(f"{n} is bad")
        return {"n": n, "text": f"number {n}"}


def tagged(xs):
    return [(x["n"], x["text"]) for x in xs]


def join(xs):
    for x in xs:
        assert x["Odd"]["n"] == x["tagged"][0] == x["Square2"] == int(x["input"][0]), x
    return [x["Odd"]["text"] for x in xs]


def square2(xs):
    time.sleep(0.0005)
    return [int(x[0]) for x in xs]


def graph():
    p = topsail.Pipeline()
    p.add(Odd, workers=2, batch="aimd", max_batch=16, idempotent=True)
    p.add(square2, name="Square2", workers=2, after="input", idempotent=True)
    p.add(tagged, after=Odd, batch=4, idempotent=True)
    p.add(join, after=[Odd, "tagged", "Square2", "input"], workers=2, batch=16, idempotent=True)
    return p


class Talking:
    def predict(self, xs):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        print("x" * 20_000)
        print("no end", end="")
        return [float(x[0]) for x in xs]


def talking():
    p = topsail.Pipeline()
    p.add(Talking)
    return p


class Broken:
    def setup(self):
        if gate := os.environ.get("TEST_SETUP"):
            wait_for(gate)
        raise OSError("the weights are not there")

    def predict(self, xs):
        return xs


def broken():
    p = topsail.Pipeline()
    p.add(Scale)
    p.add(Broken)
    return p


class Gated:
    """Waits in predict until it may go on, whenever the input is negative."""

    def predict(self, xs):
        for x in xs:
            if x[0] < 0:
                reach(f"in{int(x[0])}")
                wait_for(f"out{int(x[0])}")
        return [float(x[0]) for x in xs]

    def teardown(self):
        reach(f"teardown{os.getpid()}")


class GatedShift(Gated):
    def predict(self, xs):
        return [x + 3 for x in super().predict([[x] for x in xs])]


def gated():
    p = topsail.Pipeline()
    p.add(Gated)
    p.add(GatedShift)
    p.add(GatedShift, name="Last")
    return p


class Helped:
    """Starts a process of its own, and says which."""

    def setup(self):
        import subprocess

        self.helper = subprocess.Popen(["sleep", "60"])
        reach(f"helper{self.helper.pid}")

    def predict(self, xs):
        return [float(os.getpid()) for _ in xs]


def helped():
    p = topsail.Pipeline()
    p.add(Helped)
    return p


def pinned():
    p = topsail.Pipeline()
    p.add(
        lambda xs: [float(min(os.sched_getaffinity(0))) for _ in xs],
        name="Where",
        workers=2,
        cpus=CPUS,
        cpus_per_worker=EACH,
    )
    return p


def changing():
    p = topsail.Pipeline()
    p.add(Shift, name=f"Shift{os.getpid()}")
    return p


class Deaf:
    """Ends by no signal but SIGKILL once it has something to do."""

    def predict(self, xs):
        reach("deaf")
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(1)


def deaf():
    p = topsail.Pipeline()
    p.add(Deaf)
    return p


class Loading:
    def setup(self):
        reach("loading")
        wait_for("loaded")

    def predict(self, xs):
        return xs


def loading():
    p = topsail.Pipeline()
    p.add(Scale)
    p.add(Loading)
    return p


def dull(xs):
    return [topsail.Drop("dull") for _ in xs]


MADE, GRAPH, BROKEN = scale_shift(), graph(), broken()
EACH = int(os.environ.get("TEST_CPUS_EACH", "1"))
CPUS = [int(cpu) for cpu in os.environ.get("TEST_CPUS", "0").split(",")]

if __name__ == "__main__":
    supervisor._GRACE = float(os.environ.get("TEST_GRACE", supervisor._GRACE))
    topsail.serve(globals()[sys.argv[1]](), input_type="doubles", give_up=float(os.environ.get("TEST_GIVE_UP", 60)))
