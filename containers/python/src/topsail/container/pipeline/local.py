"""A pipeline in one process: its stages one behind the other, for development."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...output import BadInput, Drop, Error
from ...protocol import predict
from ...protocol.constants import MAX_FRAME, Status
from ...protocol.payload import Value
from ...protocol.reply import Entry
from .. import dry_run, encoding
from ..dry_run import Answer
from ..model import Model
from ..runner import Runner
from ..signature import Signature
from . import loading, stage_codec
from .stage import INPUT, Stage

_Payload = list[Value]


def run(stages: Sequence[Stage], inputs: Sequence[Any], input_type: str | None, input_length: int | None) -> list[Any]:
    """See Pipeline.run_local."""
    with Local(stages, input_type, input_length, as_served=False) as local:
        local.load()
        return local.run(inputs)


def _result(entry: Entry) -> Any:
    if entry.status == Status.OK:
        return stage_codec.read(entry.values[0])
    if entry.status == Status.BAD_INPUT:
        return BadInput(entry.message)
    return Drop(entry.message) if entry.status == Status.DROPPED else Error(entry.message)


class Local:
    """The stages of a pipeline. Values travel between them in the same form as between processes, so that what works
    here works there.

    As they are served, the entries of the last stage are what the gateway gets; else they hold its outputs as one stage
    passes them on to another, and so do queries as long as their type is not given.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        input_type: str | None = None,
        input_length: int | None = None,
        retry_singly: bool = True,
        as_served: bool = True,
        signature: Signature | None = None,
    ) -> None:
        self.stages = stages
        self.runners: dict[str, Runner] = {}  # of the stages that are loaded
        self.came: dict[str, list[_Payload]] = {}  # to each stage, for the last answers
        self.took: dict[str, float] = {}  # by each stage for them, in seconds
        self._models = {s.name: Model(s.find()) for s in self.stages}
        first = self._models[self.stages[0].name]
        self._input_type = input_type or first.input_type
        self._input_length = input_length or first.input_length
        self._retry_singly = retry_singly
        self._raw = not (as_served or self._input_type)
        self._signature = signature
        named = signature.write if signature and signature.outputs else encoding.encode
        self._write = named if as_served else _kept

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        self.teardown()

    def teardown(self) -> None:
        for runner in self.runners.values():
            runner.teardown()

    def load(self) -> None:
        for stage in self.stages:
            self.load_stage(stage)

    def load_stage(self, stage: Stage) -> Runner:
        model = self._models[stage.name]
        write = self._write if stage is self.stages[-1] else stage_codec.encode
        runner = loading.prepare(
            model, stage, self._input_type, self._input_length, write, self._retry_singly, self._raw, self._signature
        )
        self.runners[stage.name] = runner
        return runner

    def query(self, x: Any) -> _Payload:
        """The payload of an input. It raises BadInput."""
        return self.runners[self.stages[0].name].codec.example(x)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """What the last stage returns for each input, or the topsail.Error, BadInput or Drop that ended it."""
        return [_result(e) for e in self.answer([self.query(x) for x in inputs])]

    def dry_run(self, inputs: Sequence[Any]) -> list[Answer]:
        """Answers inputs as the gateway would see it. It raises BadInput."""
        return [dry_run.answer(e) for e in self.answer([self.query(x) for x in inputs])]

    def answer(self, queries: Sequence[_Payload]) -> list[Entry]:
        """One entry for each query. A query that has ended goes to no other stage."""
        ended: dict[int, Entry] = {}
        values = {INPUT: dict(enumerate(queries))}  # by where they come from and by query
        for stage in self.stages:
            inputs = {i: _joined(stage, values, i) for i in range(len(queries)) if i not in ended}
            self.came[stage.name] = list(inputs.values())
            began = time.perf_counter()
            entries = dict(zip(inputs, self._batches(stage, self.came[stage.name]), strict=True))
            self.took[stage.name] = time.perf_counter() - began
            last = stage is self.stages[-1]
            ended |= {i: _told(e, stage) for i, e in entries.items() if last or e.status != Status.OK}
            values[stage.name] = {i: e.values for i, e in entries.items()}
        return [ended[i] for i in range(len(queries))]

    def _batches(self, stage: Stage, inputs: list[_Payload]) -> list[Entry]:
        entries: list[Entry] = []
        for at in range(0, len(inputs), stage.batch.most):
            part = inputs[at : at + stage.batch.most]
            filling = part[:1] * (stage.batch.most - len(part)) if stage.batch.pad else []
            body = memoryview(dry_run.encode_payloads(part + filling))
            frames = self.runners[stage.name].run(predict.decode(body), time.monotonic(), MAX_FRAME)
            entries += dry_run.entries(frames)[: len(part)]
        return entries


def _joined(stage: Stage, values: dict[str, dict[int, _Payload]], query: int) -> _Payload:
    """What a stage gets for a query: the payload of its source, or those of several in one."""
    if len(stage.sources) == 1:
        return values[stage.sources[0]][query]
    return stage_codec.join({source: values[source][query] for source in stage.sources})


def _told(entry: Entry, stage: Stage) -> Entry:
    """A failure says where it happened, as the sidecar says it."""
    return entry if entry.status == Status.OK else replace(entry, message=f"stage {stage.name}: {entry.message}")


def _kept(output: Any) -> bytes:
    """The last stage's output as it is, if it could be sent to the gateway."""
    encoding.encode(output)
    return stage_codec.encode(output)
