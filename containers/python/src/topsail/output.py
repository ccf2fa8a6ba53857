"""What a model may put into the list that predict returns, besides plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Output:
    """A value with what the model knows about it: how sure it is, and named values beside the output."""

    value: Any
    confidence: float | None = None
    qualifiers: Mapping[str, Any] | None = None


class Scored:
    """What stock runtimes return in place of an Output: a value with the fields of its reply, which are encoded already
    because they are encoded faster for a whole batch."""

    __slots__ = ("fields", "value")

    def __init__(self, value: Any, fields: bytes) -> None:
        self.value, self.fields = value, fields


class BadInput(ValueError):
    """The model does not take this input. Its client gets the text, with 400 where it gets an error.

    Put it in the place of the output, or raise it; only that input fails.
    """


class Drop(Exception):
    """Ends a query without an output and without blame: its client gets the app's default, and the text as the reason.

    Put it in the place of the output, or raise it where an Error may be raised.
    """


class Error(Exception):
    """The failure of one input. Put it in the place of the output, or raise it in decode or encode.

    Any other exception object in a place counts the same; this one is for when no type fits better.
    """
