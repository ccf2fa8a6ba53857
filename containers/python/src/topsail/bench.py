"""`python -m topsail bench`: how latency grows with the size of a batch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from .rehearsal import encode, read
from .runner import Runner
from .table import millis, table
from .wire import predict
from .wire.constants import MAX_FRAME


class BenchFailed(Exception):
    """An input failed, so that the times would mean nothing."""


@dataclass(frozen=True)
class Point:
    size: int
    runs: int
    p50_micros: float
    p99_micros: float
    per_second: float  # inputs, at the median

    def json(self) -> dict[str, Any]:
        return asdict(self)


def sweep(runner: Runner, examples: Sequence[Any], most: int = 256, seconds: float = 0.3) -> Iterator[Point]:
    """Times batches of 1, 2, 4, ... up to `most` inputs, `seconds` for each size: decode, predict and encode, which is
    what a sidecar waits for, but for the sockets."""
    size = 1
    while size <= most:
        inputs = [examples[i % len(examples)] for i in range(size)]
        yield _point(size, _times(runner, inputs, seconds))
        size *= 2


def _times(runner: Runner, inputs: Sequence[Any], seconds: float) -> list[float]:
    body = memoryview(encode(runner, inputs))
    for answer in read(runner.run(predict.decode(body), time.monotonic(), MAX_FRAME)):  # the first run warms up too
        if answer.error is not None:
            raise BenchFailed(f"a batch of {len(inputs)} failed: {answer.error}")
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < until and len(times) < 100_000):
        began = time.perf_counter()
        runner.run(predict.decode(body), time.monotonic(), MAX_FRAME)
        times.append(time.perf_counter() - began)
    return times


def _point(size: int, times: list[float]) -> Point:
    times.sort()
    middle = median(times)
    worst = times[min(len(times) - 1, int(len(times) * 0.99))]
    return Point(size, len(times), round(middle * 1e6, 1), round(worst * 1e6, 1), round(size / middle, 1))


def as_table(points: Sequence[Point]) -> str:
    rows = [
        [str(p.size), millis(p.p50_micros / 1e6), millis(p.p99_micros / 1e6), f"{p.per_second:,.0f}"] for p in points
    ]
    return table(["batch", "p50 ms", "p99 ms", "inputs/s"], rows, left=())
