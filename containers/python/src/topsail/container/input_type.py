"""Input types: what an app takes, and what its models get to see.

With numpy, vectors are numpy arrays; without it they are array.array, and bytes are bytes. Strings are str. A numpy
vector is a view of the frame that came in: it is read-only, it may not be aligned, and it keeps the whole batch in
memory as long as it lives. numpy.stack(inputs) or x.copy() gives memory of one's own. Integers, which travel in 32
bits, are int64, as numpy makes them and as models are trained with: products and sums of them would not fit.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..optional import numpy
from ..output import BadInput
from ..protocol.constants import DType
from ..protocol.payload import Value


@dataclass(frozen=True)
class InputType:
    name: str
    code: int  # on the wire
    dtype: DType
    typecode: str  # of array.array, and of numpy after '<'; empty for text

    def reader(self, length: int = 0) -> Callable[[list[Value]], Any]:
        """A function from the values of one input to what the model gets. It raises BadInput where the type is another
        or the number of elements is not `length` (0: any)."""
        convert = self._converter()
        dtype, dims = self.dtype, 1 if self.typecode else 0

        def read(values: list[Value]) -> Any:
            value = values[0] if len(values) == 1 else None
            if value is None or value.dtype != dtype or len(value.shape) != dims:
                raise BadInput(f"this model takes one input of type {self.name}, and got {_describe(values)}")
            if length and dims and value.shape[0] != length:
                raise BadInput(f"this model takes inputs of length {length}, and got one of length {value.shape[0]}")
            return convert(value.data)

        return read

    def _converter(self) -> Callable[[Any], Any]:
        if not self.typecode:
            return _text
        if numpy is not None:
            frombuffer, dtype = numpy.frombuffer, numpy.dtype("<" + self.typecode)
            if self.dtype == DType.INT32:
                return lambda data: frombuffer(data, dtype).astype(numpy.int64)
            return lambda data: frombuffer(data, dtype)
        return bytes if self.dtype == DType.UINT8 else self._array

    def _array(self, data: Any) -> array[Any]:
        vector = array(self.typecode)
        vector.frombytes(data)
        return _little_endian(vector)

    def value(self, example: Any) -> Value:
        """The other way: an example as a client would send it, on the wire. It raises BadInput."""
        try:
            if not self.typecode:
                if not isinstance(example, str):
                    raise TypeError(f"it is of type {type(example).__name__}")
                return Value(self.dtype, (), example.encode())
            data = bytes(example) if self.dtype == DType.UINT8 else self._bytes(example)
        except (TypeError, ValueError, OverflowError) as e:
            raise BadInput(f"the example {_short(example)} is no input of type {self.name}: {e}") from None
        return Value(self.dtype, (len(data) // array(self.typecode).itemsize,), data)

    def _bytes(self, example: Any) -> bytes:
        return _little_endian(array(self.typecode, example)).tobytes()


class ChatType(InputType):
    """Requests of OpenAI's chat API: JSON objects, which models get as dicts."""

    def reader(self, length: int = 0) -> Callable[[list[Value]], Any]:
        def read(values: list[Value]) -> Any:
            value = values[0] if len(values) == 1 else None
            if value is None or value.dtype not in (DType.JSON, DType.STRING) or value.shape:
                raise BadInput(f"this model takes one chat request, and got {_describe(values)}")
            return _chat(_text(value.data))

        return read

    def value(self, example: Any) -> Value:
        try:
            text = example if isinstance(example, str) else json.dumps(example, allow_nan=False)
        except (TypeError, ValueError) as e:
            raise BadInput(f"the example {_short(example)} is no chat request: {e}") from None
        _chat(text)
        return Value(self.dtype, (), text.encode())


BYTES = InputType("bytes", 1, DType.UINT8, "B")
INTS = InputType("ints", 2, DType.INT32, "i")
FLOATS = InputType("floats", 3, DType.FLOAT32, "f")
DOUBLES = InputType("doubles", 4, DType.FLOAT64, "d")
STRINGS = InputType("strings", 5, DType.STRING, "")
TENSORS = InputType("tensors", 6, DType.OPAQUE, "")  # those of a signature, which reads them
CHAT = ChatType("chat", 7, DType.JSON, "")

_ALIASES = {
    BYTES: ("bytes", "byte", "b"),
    INTS: ("integers", "ints", "integer", "int", "i"),
    FLOATS: ("floats", "float", "f"),
    DOUBLES: ("doubles", "double", "d"),
    STRINGS: ("strings", "string", "strs", "str", "s"),
    TENSORS: ("tensors",),
    CHAT: ("chat",),
}


def parse(name: str) -> InputType:
    """Accepts the names that Topsail accepts, Clipper's short ones included."""
    for kind, aliases in _ALIASES.items():
        if name in aliases:
            return kind
    raise ValueError(f"input type {name!r} is unknown: use bytes, ints, floats, doubles, strings or chat")


def of_code(code: int) -> InputType | None:
    """The one with this number on the wire; None for 0, which stands for any. It raises ValueError."""
    for kind in _ALIASES:
        if kind.code == code:
            return kind
    if code:
        raise ValueError(f"input type {code} is unknown")
    return None


def _chat(text: str) -> dict[str, Any]:
    """The request. It raises BadInput."""
    try:
        request = json.loads(text)
    except ValueError as e:
        raise BadInput(f"the chat request is not valid JSON: {e}") from None
    except RecursionError:
        raise BadInput("the chat request is nested too deeply") from None
    if not isinstance(request, dict):
        raise BadInput('the chat request must be a JSON object, like {"messages": [...]}')
    return request


def _text(data: Any) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as e:
        raise BadInput(f"the text is not UTF-8: {e.reason} at byte {e.start}") from None


def _little_endian(vector: array[Any]) -> array[Any]:
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def _describe(values: list[Value]) -> str:
    if len(values) != 1:
        return f"{len(values)} values"
    name = DType(values[0].dtype).name.lower()
    return f"{name} of shape {list(values[0].shape)}" if values[0].shape else name


def _short(example: Any) -> str:
    text = repr(example)
    return text if len(text) <= 60 else text[:57] + "..."
