"""What the SDK itself costs per input: `PYTHONPATH=src python benchmarks/codec.py`. No sockets, no real model.

It prints nanoseconds per input, the best of several rounds: `all` is a batch from frame to reply.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from topsail.cli.table import table
from topsail.container import encoding
from topsail.container.dry_run import encode
from topsail.container.input_type import DOUBLES, STRINGS, InputType
from topsail.container.model import Model
from topsail.container.runner import Runner
from topsail.protocol import predict
from topsail.protocol.constants import MAX_FRAME
from topsail.protocol.reply import Reply

INPUTS_PER_ROUND = 20_000


def nanos(do: Callable[[], object], inputs: int) -> str:
    best = float("inf")
    for _ in range(7):
        times = max(1, INPUTS_PER_ROUND // inputs)
        began = time.perf_counter()
        for _ in range(times):
            do()
        best = min(best, (time.perf_counter() - began) / times)
    return f"{best * 1e9 / inputs:.0f}"


def measure(kind: InputType, example: object, size: int) -> list[str]:
    outputs = [1.5] * size
    runner = Runner(Model(lambda inputs: outputs), kind)
    body = memoryview(encode(runner, [example] * size))
    batch = predict.decode(body)
    read = kind.reader()

    def write() -> None:
        reply = Reply(1, MAX_FRAME)
        for i, output in enumerate(outputs):
            reply.add_output(i, encoding.encode(output))
        reply.finish(1)

    return [
        nanos(lambda: predict.decode(body), size),
        nanos(lambda: [read(values) for _, values in batch.inputs], size),
        nanos(write, size),
        nanos(lambda: runner.run(predict.decode(body), time.monotonic(), MAX_FRAME), size),
    ]


if __name__ == "__main__":
    rows = []
    for name, kind, example in (("doubles[13]", DOUBLES, [1.5] * 13), ("text", STRINGS, "hello world")):
        rows += [[name, str(size), *measure(kind, example, size)] for size in (1, 32, 256)]
    print(table(["input", "batch", "decode", "to model", "encode", "all"], rows))
