"""How inputs are decoded for a model, and outputs encoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..protocol.constants import Status
from ..protocol.payload import Value
from . import encoding
from .input_type import InputType


@dataclass(frozen=True)
class Codec:
    read: Callable[[list[Value]], Any]  # an input; it raises BadInput or others
    example: Callable[[Any], list[Value]]  # the other way, for an example; it raises BadInput
    write: Callable[[Any], bytes] = encoding.encode  # an output; what it raises is for people
    unreadable: Status = Status.BAD_INPUT  # the status of an input that cannot be read


def query_codec(input_type: InputType, length: int) -> Codec:
    """The codec of a model that answers queries. Inputs have `length` elements; 0: any number."""
    return Codec(input_type.reader(length), lambda example: [input_type.value(example)])
