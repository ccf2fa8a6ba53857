"""In what form inputs come to a model, and outputs leave it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import encoding
from .input_type import InputType
from .wire.constants import Status
from .wire.payload import Value


@dataclass(frozen=True)
class Form:
    read: Callable[[list[Value]], Any]  # an input; it raises BadInput or others
    example: Callable[[Any], list[Value]]  # the other way, for an example; it raises BadInput
    write: Callable[[Any], bytes] = encoding.encode  # an output; what it raises is for people
    unreadable: Status = Status.BAD_INPUT  # the status of an input that cannot be read


def of_queries(input_type: InputType, length: int) -> Form:
    """The form of a model that answers queries. Inputs have `length` elements; 0: any number."""
    return Form(input_type.reader(length), lambda example: [input_type.value(example)])
