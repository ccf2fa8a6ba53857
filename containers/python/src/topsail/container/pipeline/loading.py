"""From a stage to a model that can run batches of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import input_type as types
from ..input_type import InputType
from ..loading import agreed, bound, runner
from ..model import Model
from ..runner import Runner
from ..signature import Signature
from .stage import INPUT, Stage
from .stage_codec import codec


def prepare(
    model: Model,
    stage: Stage,
    input_type: str | None,
    input_length: int | None,
    write: Callable[[Any], bytes],
    retry_singly: bool = True,
    raw: bool = False,
    signature: Signature | None = None,
) -> Runner:
    """Lets the model of a stage load. The type, length and signature are those of queries, as far as they were asked
    for; `write` puts an output into its payload. `raw` says that queries come as one stage's outputs come to another.
    """
    # Feedback is on the input of a query and on its answer, and no stage of several sees both.
    model.correct = model.accuracy = None
    kind, length = _queries(model, stage, input_type, input_length)
    most = bound(model)  # stages take batches, and the inputs of one run side by side
    model.setup()
    values = codec(stage.sources, None if raw else kind, length, write, signature)
    return runner(model, kind, length, retry_singly, values, most)


def _queries(model: Model, stage: Stage, asked: str | None, length: int | None) -> tuple[InputType | None, int]:
    """The type and length of queries, as far as this stage knows them: what a model says of its inputs is about
    queries only where it gets them."""
    if INPUT in stage.sources:
        return agreed(model, asked, length)
    return types.parse(asked) if asked else None, length or 0
