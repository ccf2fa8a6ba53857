"""Whose query an input is: what predict may want to know besides the input itself."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, NamedTuple

from ..protocol.constants import NO_DEADLINE
from ..protocol.cursor import Cursor

_USER, _CONTEXT = 1, 6  # fields of an entry of PREDICT


class Session(NamedTuple):
    """The session of one query. A predict function with a parameter named `sessions` gets a list of them, one for each
    input; one that takes a single input gets its own as `session`. The version has to be registered with
    session = true, because answers are then cached by user and context."""

    user: str = ""
    context: str = ""
    left: float | None = None  # seconds until the answer must be there; None: as long as it takes


ONE, EACH = "session", "sessions"  # the parameter of a predict that takes one input, and of one that takes batches


def wanted(predict: Callable[..., Any], name: str = EACH) -> bool:
    """Whether a predict function declares the parameter."""
    try:
        parameter = signature(predict).parameters.get(name)
    except (TypeError, ValueError):  # some built-in functions do not say
        return False
    return parameter is not None and parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def read(left: int, fields: memoryview | bytes) -> Session:
    """The session of an entry of PREDICT, from its time left in microseconds and its fields."""
    found = {tag: value for tag, value in Cursor(memoryview(fields)).fields("predict") if tag in (_USER, _CONTEXT)}
    user, context = (str(found.get(tag, b""), "utf-8", "replace") for tag in (_USER, _CONTEXT))
    return Session(user, context, None if left == NO_DEADLINE else left / 1e6)
