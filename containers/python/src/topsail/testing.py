"""Try a model in a test of your own, without sockets.

from topsail import testing

def test_wine():
    [answer] = testing.run(Wine, [[13.2, 1.78, ...]])
    assert answer.output == 0 and answer.confidence > 0.8
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .container.dry_run import Answer, dry_run
from .container.loading import prepare, warm_up
from .container.pipeline import Pipeline
from .container.pipeline.local import Local
from .protocol.constants import Status

__all__ = ["Answer", "Status", "run"]


def run(
    model: Any,
    inputs: Sequence[Any],
    input_type: str | None = None,
    *,
    input_length: int | None = None,
    retry_singly: bool = True,
) -> list[Answer]:
    """Loads a model as a container does, runs `inputs` as one batch, and returns an answer for each. All stages of a
    pipeline are loaded in this process.

    Inputs are given as clients send them: lists of numbers, bytes or str. What the model does wrong is in the answers;
    what keeps it from being ready (setup or warm-up fails) is raised.
    """
    if isinstance(model, Pipeline):
        with Local(model.stages, input_type, input_length, retry_singly) as local:
            local.load()
            for runner in local.runners.values():
                warm_up(runner)
            return local.dry_run(inputs)
    runner = prepare(model, input_type, input_length, retry_singly)
    try:
        warm_up(runner)
        return dry_run(runner, inputs)
    finally:
        runner.teardown()
