"""Two stages that each keep a processor busy for about a millisecond, two workers each.

    python stages.py                served by Topsail
    python stages.py SECONDS        called one by one; prints calls per second
"""

import sys
import time


def busy(x):
    for i in range(20_000):
        x = (x * 31 + i) & 0xFFFF
    return x


def first(x):
    return busy(x) or 1


def second(x):
    return busy(x) * 0.0 + 0.5


def serve():
    import topsail

    p = topsail.Pipeline()
    p.add(lambda inputs: [first(len(x)) for x in inputs], name="first", workers=2)
    p.add(lambda inputs: [second(x) for x in inputs], name="second", workers=2)
    topsail.serve(p, input_type="doubles")


def alone(seconds):
    end, calls = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        second(first(4))
        calls += 1
    print(calls / seconds)


if __name__ == "__main__":
    alone(float(sys.argv[1])) if sys.argv[1:] else serve()
