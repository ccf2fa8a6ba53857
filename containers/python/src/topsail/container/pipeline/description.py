"""The stages of a pipeline as JSON: what workers announce, and what TOPSAIL_STAGES says (docs/protocol.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from .pipeline import Pipeline
from .stage import INPUT, Batching, PipelineError, Stage

VARIABLE = "TOPSAIL_STAGES"

T = TypeVar("T")
_Entry = dict[str, Any]


def write(stages: Sequence[Stage]) -> str:
    """The same text for the same stages, always: all workers have to announce the same."""
    return json.dumps([_written(s, _default(stages[:i])) for i, s in enumerate(stages)], separators=(",", ":"))


def _written(stage: Stage, default: tuple[str, ...]) -> _Entry:
    batch = asdict(stage.batch)
    members = {
        "after": list(stage.sources) if stage.sources != default else None,
        "code": stage.code,
        "workers": stage.workers,
        "cpus": list(stage.cpus),
        "cpus_per_worker": stage.cpus_per_worker if stage.cpus_per_worker > 1 else None,
        "batch": {k: v for k, v in batch.items() if v} if stage.batch != Batching() else None,
        "max_queue": stage.max_queue,
        "idempotent": stage.idempotent,
    }
    return {"name": stage.name} | {name: value for name, value in members.items() if value}


def _default(before: Sequence[Stage]) -> tuple[str, ...]:
    """What a stage takes that does not say it."""
    return (before[-1].name if before else INPUT,)


def read(text: str) -> Pipeline:
    """The pipeline that the text describes. It raises PipelineError."""
    stages: list[Stage] = []
    for entry in _entries(text):
        sources = _list(entry, "after", str) or _default(stages)
        stages.append(_told(Stage(_name(entry), tuple(sources), code=_member(entry, "code", str, "")), entry))
    pipeline = Pipeline.of(stages)
    pipeline.check()
    return pipeline


def of_code(environ: Mapping[str, str]) -> Pipeline | None:
    """The pipeline of the environment, whose stages all say their code; None if there is none. Raises PipelineError."""
    text = environ.get(VARIABLE)
    if not text:
        return None
    pipeline = read(text)
    for stage in pipeline.stages:
        if not stage.code:
            raise _wrong(f"stage {stage.name!r} has no code, as module:name, and no program says what it is")
    return pipeline


def override(pipeline: Pipeline, environ: Mapping[str, str]) -> Pipeline:
    """The pipeline with what the environment says of stages: their workers, CPUs, batches and queues, and whether they
    are idempotent. It raises PipelineError."""
    text = environ.get(VARIABLE)
    if not text:
        return pipeline
    stages = pipeline.stages
    told: dict[str, _Entry] = {}
    for entry in _entries(text):
        name = _name(entry)
        if name not in {s.name for s in stages}:
            raise _wrong(f"it names the stage {name!r}, and the program has {', '.join(s.name for s in stages)}")
        if name in told:
            raise _wrong(f"it names the stage {name!r} twice")
        told[name] = entry
    return Pipeline.of(_told(s, told.get(s.name, {})) for s in stages)


def _told(stage: Stage, entry: _Entry) -> Stage:
    return replace(
        stage,
        workers=_member(entry, "workers", int, 0) or stage.workers,
        cpus=tuple(_list(entry, "cpus", int)) or stage.cpus,
        cpus_per_worker=_member(entry, "cpus_per_worker", int, 0) or stage.cpus_per_worker,
        batch=_batch(entry) or stage.batch,
        max_queue=_member(entry, "max_queue", int, 0) or stage.max_queue,
        idempotent=_member(entry, "idempotent", bool, stage.idempotent),
    )


def _batch(entry: _Entry) -> Batching | None:
    batch = _member(entry, "batch", dict, {})
    if not batch:
        return None
    strategy = _member(batch, "strategy", str, "") or "none"
    return Batching(
        strategy,
        _member(batch, "max_size", int, 0),
        _member(batch, "delay_micros", int, 0),
        _member(batch, "pad", bool, False),
    )


def _entries(text: str) -> Iterable[_Entry]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise _wrong(f"it is not valid JSON: {e}") from None
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise _wrong("it is no list of stages")
    return entries


def _name(entry: _Entry) -> str:
    return _member(entry, "name", str, "")


def _member(entry: _Entry, name: str, kind: type[T], default: T) -> T:
    """A member of a stage or of its batch; null is as if it were not there."""
    value = entry.get(name)
    return default if value is None else _checked(value, name, kind)


def _list(entry: _Entry, name: str, kind: type[T]) -> list[T]:
    listed: list[Any] = _member(entry, name, list, [])
    return [_checked(value, name, kind) for value in listed]


def _checked(value: Any, name: str, kind: type[T]) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong(f"{value!r} cannot be {name}")
    return value


def _wrong(problem: str) -> PipelineError:
    return PipelineError(f"{VARIABLE} makes no sense: {problem}")
