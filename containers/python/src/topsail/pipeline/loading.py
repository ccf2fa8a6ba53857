"""From a stage to a model that can run batches of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import input_type as types
from ..input_type import InputType
from ..loading import agreed
from ..model import Model
from ..runner import Runner
from .passing import form
from .stage import INPUT, Stage


def prepare(
    model: Model,
    stage: Stage,
    input_type: str | None,
    input_length: int | None,
    write: Callable[[Any], bytes],
    retry_singly: bool = True,
    raw: bool = False,
) -> Runner:
    """Lets the model of a stage load. The type and length are those of queries, as far as they were asked for; `write`
    puts an output into its payload. `raw` says that queries come as one stage's outputs come to another."""
    # Feedback is on the input of a query and on its answer, and no stage of several sees both.
    model.correct = model.accuracy = None
    kind, length = _queries(model, stage, input_type, input_length)
    model.setup()
    return Runner(model, kind, length, retry_singly, form(stage.sources, None if raw else kind, length, write))


def _queries(model: Model, stage: Stage, asked: str | None, length: int | None) -> tuple[InputType | None, int]:
    """The type and length of queries, as far as this stage knows them: what a model says of its inputs is about
    queries only where it gets them."""
    if INPUT in stage.sources:
        return agreed(model, asked, length)
    return types.parse(asked) if asked else None, length or 0
