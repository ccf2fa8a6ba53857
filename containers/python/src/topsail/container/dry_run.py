"""A batch through the whole of a container but its sockets: what warm-up, check, bench and tests use."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..protocol import predict, reply
from ..protocol.constants import ITEM_SIZE, MAX_FRAME, MAX_INPUTS, NO_DEADLINE, DType, Status
from ..protocol.frame import Assembler
from ..protocol.payload import Value
from ..protocol.predict import Input
from ..protocol.reply import Entry
from .decoding import numbers
from .runner import Runner
from .signature import value_of


@dataclass(frozen=True)
class Answer:
    """What became of one input, as the gateway sees it. `error` is None if there is an output.

    `output` is what the REST answer nests: text that is valid JSON is its value, a tensor is nested lists. `outputs`
    are all of a model that names them, of which `output` is the first.
    """

    output: Any = None
    error: str | None = None
    status: Status = Status.OK
    confidence: float | None = None
    qualifiers: dict[str, Any] = field(default_factory=dict)
    dtype: DType | None = None  # in which the output travels
    shape: tuple[int, ...] = ()
    outputs: dict[str, Any] | None = None


def dry_run(runner: Runner, examples: Sequence[Any], left: int = NO_DEADLINE) -> list[Answer]:
    """Answers examples as one batch, each with `left` microseconds. It raises BadInput for what is no input at all."""
    if not examples:
        return []
    return read(runner.run(predict.decode(memoryview(encode(runner, examples, left))), time.monotonic(), MAX_FRAME))


def encode(runner: Runner, examples: Sequence[Any], left: int = NO_DEADLINE) -> bytes:
    """The body of the PREDICT that a sidecar would send."""
    return encode_payloads([runner.codec.example(x) for x in examples], left)


def encode_payloads(payloads: Sequence[list[Value]], left: int = NO_DEADLINE) -> bytes:
    """The same for inputs that are encoded already."""
    if len(payloads) > MAX_INPUTS:
        raise ValueError(f"a batch has at most {MAX_INPUTS} inputs, not {len(payloads)}")
    return predict.encode(1, 1, [Input(left, values) for values in payloads])


def read(frames: bytes) -> list[Answer]:
    """The answers in the frames of a reply, in the order of the inputs."""
    return [answer(e) for e in entries(frames)]


def entries(frames: bytes) -> list[Entry]:
    """The entries of a reply, in the order of the inputs."""
    found: list[Entry] = []
    for f in Assembler().feed(frames):
        found += reply.decode(f.body).entries
    return sorted(found, key=lambda e: e.index)


def answer(entry: Entry) -> Answer:
    """What the gateway makes of an entry."""
    if entry.status != Status.OK:
        return Answer(error=entry.message, status=Status(entry.status))
    value = entry.values[0]
    outputs = {v.name: value_of(v) for v in entry.values} if value.name else None
    return Answer(
        output=outputs[value.name] if outputs else _nest(value),
        confidence=entry.confidence,
        qualifiers={q.name: _nest(q) for q in entry.qualifiers},
        dtype=DType(value.dtype),
        shape=value.shape,
        outputs=outputs,
    )


def _nest(value: Value) -> Any:
    """A value as the REST answer shows it; what one stage passes on to another it never shows."""
    if value.dtype == DType.OPAQUE:
        return bytes(value.data)
    return numbers(value) if value.dtype in ITEM_SIZE else _text(str(value.data, "utf-8"))


def _text(text: str) -> Any:
    """Clipper's rule, which Topsail keeps: text that is valid JSON is nested as JSON."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")
