"""What users write: a pipeline, stage by stage."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .stage import INPUT, Batching, PipelineError, Stage

if TYPE_CHECKING:
    from .service import PipelineService

MAX_STAGES = 32


class Pipeline:
    """A model that is a sequence of stages, or a graph of them: each takes from stages before it, and the last one
    answers the query.

    p = topsail.Pipeline()
    p.add(Decode, workers=2, cpus=[1, 2])
    p.add(Embed, batch="aimd")
    p.add(Rank, workers=2, batch=16, batch_delay=0.002)
    topsail.serve(p, input_type="strings")
    """

    def __init__(self) -> None:
        self._stages: list[Stage] = []

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(s.name for s in self._stages)})"

    @classmethod
    def of(cls, stages: Iterable[Stage]) -> Pipeline:
        """The pipeline of these stages. It raises PipelineError."""
        pipeline = cls()
        for stage in stages:
            pipeline._append(stage)
        return pipeline

    def add(
        self,
        stage: Any,
        *,
        name: str | None = None,
        workers: int = 1,
        cpus: Sequence[int] | None = None,
        cpus_per_worker: int = 1,
        batch: int | str | None = None,
        batch_delay: float = 0.0,
        max_batch: int | None = None,
        batch_pad: bool = False,
        after: Any = None,
        max_queue: int = 0,
        idempotent: bool = False,
    ) -> None:
        """Adds a stage behind those that are there.

        `stage` is what `topsail.serve` takes: a function from a list of inputs to a list of outputs of the same length,
        or a class or object with such a `predict` method and hooks; or its place as text, "module:name", which only the
        stage's own workers import. `name` is that of the function or class unless said otherwise.

        `workers`: processes that run it; worker i on the CPU `cpus[i % len(cpus)]`, without `cpus` on any. With
        `cpus_per_worker`, each gets so many of `cpus`, in turn: of [0, 1, 2, 3] and 2 the first gets 0 and 1.
        `batch`: None for lists of one, a number for lists of up to so many, "aimd" or "quantile" for as many as meet
        the deadlines, at most `max_batch`. `batch_delay`: seconds that a list may wait to fill, from its first input.
        `batch_pad`, for a number: shorter lists are filled up to it with copies of an input, whose outputs are dropped.

        `after`: whose outputs it takes: a stage's name, what was given to `add` for it, "input" for the query's input,
        or a list of these; unless said otherwise the stage added before, and the first one the input. A stage with
        several sources gets a dict by their names.

        `max_queue`: the most inputs that wait before it, beyond which the stages before it rest; 1024 without.

        `idempotent`: an input whose worker died may be given to another one, once.

        It raises PipelineError, which is a ValueError.
        """
        code = stage if isinstance(stage, str) else ""
        called = _name(stage) if name is None else name
        _check_served(called, stage)
        self._append(
            Stage(
                name=called,
                sources=self._sources(called, after),
                served=None if code else stage,
                code=code,
                workers=_whole(called, "workers", workers),
                cpus=_cpus(called, cpus),
                cpus_per_worker=_whole(called, "cpus_per_worker", cpus_per_worker),
                batch=replace(_batch(called, batch, batch_delay, max_batch), pad=bool(batch_pad)),
                max_queue=_whole(called, "max_queue", max_queue),
                idempotent=bool(idempotent),
            )
        )

    def _append(self, stage: Stage) -> None:
        stage.check([s.name for s in self._stages])
        if len(self._stages) == MAX_STAGES:
            raise PipelineError(f"a pipeline has at most {MAX_STAGES} stages")
        self._stages.append(stage)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, each behind those that it takes from. It raises PipelineError where one leads nowhere."""
        self.check()
        return tuple(self._stages)

    def check(self) -> None:
        """It raises PipelineError for a pipeline without stages, or with one that leads nowhere."""
        if not self._stages:
            raise PipelineError("the pipeline has no stages: add one")
        used = {name for s in self._stages for name in s.sources}
        for stage in self._stages[:-1]:
            if stage.name not in used:
                raise PipelineError(
                    f"stage {stage.name!r} feeds no other stage: only the last one answers the query, "
                    "and each other one is named in after of a later one"
                )

    def run_local(
        self, inputs: Iterable[Any], *, input_type: str | None = None, input_length: int | None = None
    ) -> list[Any]:
        """Runs all stages in this process, one behind the other, without a sidecar: the same code for development.

        It returns for each input what the last stage returned, or a topsail.Error, BadInput or Drop that says which
        stage ended its way. The size of a batch is the most that it has; "aimd" and "quantile" may take all inputs at
        once.

        With an `input_type`, from here or from the first stage, inputs are given as clients send them, and the first
        stage gets what it would get from a sidecar; without one it gets them as they are.
        """
        from .local import run  # which loads what only development needs

        return run(self.stages, list(inputs), input_type, input_length)

    def serve(self, *, max_queue_size: int = 1024, cpus: Sequence[int] | None = None) -> PipelineService:
        """The pipeline inside this program, with worker processes for its stages, and without Topsail:

        async with pipeline.serve() as p:
            outputs = await asyncio.gather(*(p.predict(x) for x in inputs))

        Inputs and outputs are passed as between stages. `max_queue_size` bounds what waits before each stage without a
        `max_queue`, and `predict` waits while the first queue is full. The program runs on `cpus` meanwhile, without on
        any. Workers are started as multiprocessing's "spawn" does: a program needs `if __name__ == "__main__"`, and
        what stages are made of must be picklable. There are no deadlines: batches of "aimd" and "quantile" are what
        waits.

        It raises PipelineError.
        """
        from .service import PipelineService  # which loads what only such programs need

        return PipelineService(self.stages, max_queue_size, _cpus("the program", cpus))

    def _sources(self, called: str, after: Any) -> tuple[str, ...]:
        if after is None:
            return (self._stages[-1].name if self._stages else INPUT,)
        several = after if isinstance(after, list | tuple) else [after]
        if not several:
            raise PipelineError(f"stage {called!r}: after is empty: name at least one stage, or {INPUT!r}")
        return tuple(self._named(called, one) for one in several)

    def _named(self, called: str, one: Any) -> str:
        """The name of a stage that `after` means."""
        names = [s.name for s in self._stages]
        if isinstance(one, str) and (one in names or one == INPUT):
            return one
        found = [s.name for s in self._stages if s.served is one or (s.code and s.code == one)]
        if len(found) > 1:
            raise PipelineError(f"stage {called!r}: after means several stages, {', '.join(found)}: give a name")
        if not found:
            there = ", ".join(repr(n) for n in (INPUT, *names))
            raise PipelineError(
                f"stage {called!r}: after names {one!r}, which is not a stage before it: there are {there}"
            )
        return found[0]


def _name(stage: Any) -> str:
    if isinstance(stage, str):
        return stage.rpartition(":")[2].rpartition(".")[2]
    if isinstance(stage, type | types.FunctionType | types.BuiltinFunctionType | types.MethodType):
        return stage.__name__
    return type(stage).__name__


def _check_served(called: str, stage: Any) -> None:
    if isinstance(stage, str):
        if not all(stage.rpartition(":")):
            raise PipelineError(f"stage {called!r}: {stage!r} names no code: write module:name")
    elif not isinstance(stage, type) and not callable(getattr(stage, "predict", stage)):
        raise PipelineError(
            f"stage {called!r}: {stage!r} is no model: give a function, or a class or object with a predict method"
        )


def _cpus(called: str, cpus: Sequence[int] | None) -> tuple[int, ...]:
    try:
        return tuple(_whole(called, "cpus", cpu) for cpu in cpus or ())
    except TypeError:
        raise PipelineError(f"stage {called!r}: cpus is {cpus!r}, which is no list of CPUs") from None


def _whole(called: str, what: str, number: Any) -> int:
    if isinstance(number, bool) or not hasattr(type(number), "__index__"):
        raise PipelineError(f"stage {called!r}: {what}: {number!r} is no whole number")
    return int(number.__index__())


def _batch(called: str, batch: int | str | None, delay: float, most: int | None) -> Batching:
    try:
        micros = round(delay * 1e6) if math.isfinite(delay) else -1
    except TypeError:
        raise PipelineError(f"stage {called!r}: batch_delay is {delay!r}, which is no number of seconds") from None
    if isinstance(batch, str):
        return Batching(batch, _at_least_one(called, "max_batch", most), micros)
    if most is not None:
        raise PipelineError(f"stage {called!r}: max_batch is for batch='aimd' and 'quantile'")
    if batch is None:
        return Batching(delay_micros=micros)
    return Batching("fixed", _at_least_one(called, "batch", batch), micros)


def _at_least_one(called: str, what: str, number: Any) -> int:
    """A size; 0 for None. Zero itself would mean that there is none."""
    if number is None:
        return 0
    if _whole(called, what, number) < 1:
        raise PipelineError(f"stage {called!r}: {what} must be at least 1")
    return _whole(called, what, number)
