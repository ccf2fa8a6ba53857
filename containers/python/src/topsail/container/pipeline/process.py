"""Which process of a pipeline this is: the supervisor, or one of the workers that it has started."""

from __future__ import annotations

from collections.abc import MutableMapping

from ..settings import Settings
from .description import override
from .pipeline import Pipeline
from .supervisor import StageFailed, Supervisor
from .worker import take_assignment, work


def run(pipeline: Pipeline, settings: Settings, environ: MutableMapping[str, str]) -> None:
    """Returns when Topsail has stopped it. It raises PipelineError, SidecarGone, or what loading a stage raises."""
    assignment = take_assignment(environ)
    stages = override(pipeline, environ).stages
    if assignment:
        work(assignment, stages, settings)
        return
    try:
        Supervisor(stages, environ).run()
    except StageFailed as e:
        raise SystemExit(f"topsail: {e}") from None
