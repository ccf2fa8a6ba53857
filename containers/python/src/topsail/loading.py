"""From what the user wrote to a model that can run batches."""

from __future__ import annotations

from typing import Any

from . import input_type as types
from .input_type import InputType
from .model import Model
from .rehearsal import Answer, rehearse
from .runner import Runner
from .settings import SettingsError
from .wire.constants import Status


class WarmUpFailed(Exception):
    """The model fails on its own examples, so it is not worth announcing."""


def prepare(served: Any, input_type: str | None, input_length: int | None, retry_singly: bool = True) -> Runner:
    """Makes the object if a class was given, and lets it load. What it says of its inputs must agree with what was
    asked for."""
    model = Model(served)
    kind, length = agreed(model, input_type, input_length)
    model.setup()
    return Runner(model, kind, length, retry_singly)


def agreed(model: Model, input_type: str | None, input_length: int | None) -> tuple[InputType, int]:
    """The type and length of queries, by what the model says and what was asked for. It raises SettingsError."""
    asked = types.parse(input_type) if input_type else None
    own = types.parse(model.input_type) if model.input_type else None
    if asked and own and asked != own:
        raise SettingsError(f"{model.name} takes {own.name}, and is served with {asked.name}: make input_type agree")
    if input_length and model.input_length and input_length != model.input_length:
        raise SettingsError(
            f"{model.name} takes inputs of length {model.input_length}, and is served with {input_length}: "
            "make input_length agree"
        )
    return asked or own or types.DOUBLES, input_length or model.input_length or 0


def warm_up(runner: Runner) -> list[Answer]:
    """Runs the model's own examples as one batch. The first prediction of many models is slow, and no query should pay
    for that."""
    answers = rehearse(runner, runner.model.warmup())
    for place, answer in enumerate(answers):
        if answer.error is not None and answer.status != Status.DROPPED:
            raise WarmUpFailed(f"warm-up failed for example {place} of {len(answers)}: {answer.error}")
    return answers
