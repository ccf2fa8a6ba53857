"""`python -m topsail bench`: how latency grows with the size of a batch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from ..container.dry_run import encode_payloads, read
from ..container.pipeline.local import Local
from ..container.runner import Runner
from ..protocol import predict
from ..protocol.constants import MAX_FRAME, Status
from ..protocol.payload import Value
from .table import millis, table


class BenchFailed(Exception):
    """An input failed, so that the times would mean nothing."""


@dataclass(frozen=True)
class Point:
    size: int
    runs: int
    p50_micros: float
    p99_micros: float
    per_second: float  # inputs, at the median
    stage: str = ""  # of a pipeline

    def json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value != ""}


def sweep(runner: Runner, examples: Sequence[Any], most: int = 256, seconds: float = 0.3) -> Iterator[Point]:
    """Times batches of 1, 2, 4, ... up to `most` inputs, `seconds` for each size: decode, predict and encode, which is
    what a sidecar waits for, but for the sockets."""
    return _sweep(runner, [runner.codec.example(x) for x in examples], most, seconds)


def sweep_stages(local: Local, examples: Sequence[Any], most: int = 256, seconds: float = 0.3) -> Iterator[Point]:
    """The same for each stage of a pipeline that is loaded, with what comes to it when examples go through."""
    for answer in local.dry_run(examples):
        if answer.error is not None and answer.status != Status.DROPPED:
            raise BenchFailed(f"an example failed: {answer.error}")
    for stage in local.stages:
        if came := local.came[stage.name]:
            for point in _sweep(local.runners[stage.name], came, min(most, stage.batch.most), seconds):
                yield replace(point, stage=stage.name)


def _sweep(runner: Runner, payloads: Sequence[list[Value]], most: int, seconds: float) -> Iterator[Point]:
    size = 1
    while size <= most:
        yield _point(size, _times(runner, [payloads[i % len(payloads)] for i in range(size)], seconds))
        size *= 2


def _times(runner: Runner, inputs: Sequence[list[Value]], seconds: float) -> list[float]:
    body = memoryview(encode_payloads(inputs))
    for answer in read(runner.run(predict.decode(body), time.monotonic(), MAX_FRAME)):  # the first run warms up too
        if answer.error is not None and answer.status != Status.DROPPED:
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
    head = ["batch", "p50 ms", "p99 ms", "inputs/s"]
    if not any(p.stage for p in points):
        return table(head, rows, left=())
    return table(["stage", *head], [[p.stage, *row] for p, row in zip(points, rows, strict=True)])
