"""From what the user wrote to a model that can run."""

from __future__ import annotations

from typing import Any

from ..optional import numpy
from ..protocol.constants import ANY_CONCURRENCY, Status
from . import input_type as types, query_session
from .codec import Codec, query_codec
from .dry_run import Answer, dry_run
from .execution import Execution
from .input_type import InputType
from .model import Model
from .runner import Runner
from .settings import SettingsError
from .signature import Signature


class WarmUpFailed(Exception):
    """The model fails on its own examples, so it is not worth announcing."""


def prepare(
    served: Any,
    input_type: str | None,
    input_length: int | None,
    retry_singly: bool = True,
    signature: Signature | None = None,
    session: bool = True,
    concurrency: int | None = None,
) -> Runner:
    """Makes the object if a class was given, and lets it load. What it says of its inputs must agree with what was
    asked for. `concurrency` bounds how many queries run side by side."""
    model = Model(served)
    kind, length = agreed(model, input_type, input_length)
    codec, signature = query_codec(kind, length), signature or model.signature
    if signature:
        codec = signature.codec(codec)
    elif kind == types.TENSORS:
        raise SettingsError(f"{model.name} takes tensors, and is served without a signature, which says which")
    if model.batched and numpy is None:
        raise SettingsError(f"{model.name} takes batches as arrays (batched = True), which needs numpy")
    wants = query_session.EACH if model.execution is Execution.BATCHES else query_session.ONE
    if not session and query_session.wanted(model.predict, wants):
        raise SettingsError(
            f"{model.name} wants the sessions of its queries: register the version with session = true, so that its "
            "answers are cached for each user and context"
        )
    most = bound(model, concurrency)
    model.setup()
    return runner(model, kind, length, retry_singly, codec, most)


def bound(model: Model, concurrency: int | None = None) -> int | None:
    """How many queries the model runs side by side at most, if that is known. It raises SettingsError for a model that
    cannot, or that wants two ways at once."""
    if model.execution is Execution.BATCHES:
        if concurrency is not None:
            raise SettingsError(
                f"{model.name} takes batches, one at a time, and concurrency= is for a predict that takes one input: "
                "a generator or coroutine, or a function of a model with concurrent = True"
            )
        return None
    if model.batched:
        raise SettingsError(
            f"{model.name} takes one input at a time (its predict is a generator or coroutine, or it has "
            "concurrent = True), which batched = True contradicts: leave one of them out"
        )
    if query_session.wanted(model.predict, query_session.EACH):
        raise SettingsError(f"{model.name} takes one input at a time: call its parameter session, not sessions")
    most = concurrency if concurrency is not None else model.concurrent or True
    if isinstance(most, bool):
        return None
    if not isinstance(most, int) or not 0 < most < ANY_CONCURRENCY:
        raise SettingsError(f"{model.name} has concurrency {most!r}, which must be a number from 1 on")
    return most


def runner(
    model: Model,
    kind: InputType | None,
    length: int,
    retry_singly: bool,
    codec: Codec,
    most: int | None = None,
) -> Runner:
    """The runner of a model that is set up."""
    if model.execution is Execution.BATCHES:
        return Runner(model, kind, length, retry_singly, codec)
    from .concurrent.runner import ConcurrentRunner  # most models have no use for it

    return ConcurrentRunner(model, kind, length, codec, most)


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
    answers = dry_run(runner, runner.model.warmup())
    for index, answer in enumerate(answers):
        if answer.error is not None and answer.status != Status.DROPPED:
            raise WarmUpFailed(f"warm-up failed for example {index} of {len(answers)}: {answer.error}")
    return answers
