"""A worker: the process that serves one stage of a pipeline, over a connection of its own."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace

from .. import encoding
from ..container import Container
from ..lifecycle import SidecarGone
from ..model import Model
from ..runner import Runner
from ..settings import Settings
from . import description, loading, stage_codec
from .control import FAILED, GONE, READY, ControlSocket
from .stage import PipelineError, Stage

_STAGE, _INDEX, _PIPELINE, _CONTROL = "TOPSAIL_STAGE", "TOPSAIL_WORKER", "TOPSAIL_PIPELINE", "TOPSAIL_CONTROL"
_LINGER = 0.1  # seconds without a batch after which the stages before have passed on all they had, beside its delay


@dataclass(frozen=True)
class Assignment:
    """What a worker is to do."""

    stage: str
    index: int
    pipeline: str  # as all workers announce it
    control: int  # a descriptor

    def environment(self) -> dict[str, str]:
        return {
            _STAGE: self.stage,
            _INDEX: str(self.index),
            _PIPELINE: self.pipeline,
            _CONTROL: str(self.control),
        }


def take_assignment(environ: MutableMapping[str, str]) -> Assignment | None:
    """The assignment of this process; None for one that is no worker. The variables go, since they are nothing to
    processes that the model may start."""
    found = {name: environ.pop(name, "") for name in (_STAGE, _INDEX, _PIPELINE, _CONTROL)}
    if not all(found.values()):
        return None
    return Assignment(found[_STAGE], int(found[_INDEX]), found[_PIPELINE], int(found[_CONTROL]))


def work(assignment: Assignment, stages: Sequence[Stage], settings: Settings) -> None:
    """Serves the stage until the supervisor or a signal ends it, and tells the supervisor how it goes."""
    control = _control(assignment.control)
    try:
        stage = _find(assignment, stages)
        settings = replace(_with_queries(settings, stages[0]), stage=assignment.stage, pipeline=assignment.pipeline)
        container = Container(lambda: _load(stage, stage is stages[-1], settings), settings, lambda: control.say(READY))
        control.watch(lambda: container.stop(_LINGER + stage.batch.delay_micros / 1e6))
        container.run()
    except SidecarGone as e:
        control.say(GONE, str(e))
        raise SystemExit(1) from None  # the supervisor says it for all
    except BaseException as e:
        control.say(FAILED, f"{type(e).__name__}: {e}")
        raise


def _control(descriptor: int) -> ControlSocket:
    try:
        return ControlSocket(descriptor)
    except OSError:
        raise PipelineError(f"{_STAGE} is set, as for the worker of a pipeline, and there is no supervisor") from None


def _find(assignment: Assignment, stages: Sequence[Stage]) -> Stage:
    if description.write(stages) != assignment.pipeline:
        raise PipelineError(
            "the pipeline of this worker is not the one of its supervisor: the program, which is run for each of them, "
            "must make the same one each time"
        )
    [stage] = [s for s in stages if s.name == assignment.stage]
    return stage


def _with_queries(settings: Settings, first: Stage) -> Settings:
    """With the type and length of queries, which the first stage may say: all workers announce them."""
    return replace(
        settings,
        input_type=settings.input_type or getattr(first.served, "input_type", None),
        input_length=settings.input_length or getattr(first.served, "input_length", None),
    )


def _load(stage: Stage, last: bool, s: Settings) -> Runner:
    named = s.signature.write if s.signature and s.signature.outputs else encoding.encode
    write = named if last else stage_codec.encode
    return loading.prepare(
        Model(stage.find()), stage, s.input_type, s.input_length, write, s.retry_singly, signature=s.signature
    )
