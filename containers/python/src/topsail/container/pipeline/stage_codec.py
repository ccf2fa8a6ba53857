"""What travels between stages.

| from a stage                           | on the wire                                       | to the next stage       |
|----------------------------------------|---------------------------------------------------|-------------------------|
| str                                    | a string                                          | str                     |
| bytes                                  | a uint8 tensor of one dimension                   | bytes                   |
| numpy array of bool, int32, int64,     | a tensor; one of uint8 has a first dimension of 1 | the same, read-only: a  |
| float32, float64 or uint8              | more than the array, to tell it from bytes        | view of the message     |
| anything else                          | an opaque value: its pickle                       | what pickle makes of it |

Of the first value alone it can be said what it is: that is all of an output that a stage with several sources gets.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...optional import numpy
from ...protocol import payload
from ...protocol.constants import MAX_DIMENSIONS, DType, Status
from ...protocol.payload import Value
from ..codec import Codec
from ..decoding import decode
from ..input_type import BadInput, InputType
from .stage import INPUT

_PROTOCOL = 5  # of pickle

_TENSORS: dict[Any, DType] = {}  # by numpy's dtype
if numpy is not None:
    _TENSORS = {
        numpy.dtype("?"): DType.BOOL,
        numpy.dtype("u1"): DType.UINT8,
        numpy.dtype("<i4"): DType.INT32,
        numpy.dtype("<i8"): DType.INT64,
        numpy.dtype("<f4"): DType.FLOAT32,
        numpy.dtype("<f8"): DType.FLOAT64,
    }
_WHOLE = frozenset(map(int, (DType.STRING, DType.OPAQUE)))  # those without a shape
_OPAQUE = int(DType.OPAQUE)
_ARRAYS = {dtype: name for name, dtype in _TENSORS.items()}

_Read = Callable[[list[Value]], Any]


def codec(
    sources: Sequence[str], input_type: InputType | None, input_length: int, write: Callable[[Any], bytes]
) -> Codec:
    """The codec by which a stage takes its inputs, and gives its outputs by `write`. Without an input type the query's
    input travels as between stages, which is for a pipeline in one process only.

    Only what a stage has written is ever unpickled: it was pickled by a worker of the same program, and came by way of
    the sidecar, which takes it from none but the containers that know its token. A query's input comes from a stranger.
    It is read by its input type, which has no opaque values, wherever it goes in the pipeline.
    """
    readers: dict[str, _Read] = {source: _read_one for source in sources}
    if input_type and INPUT in readers:
        readers[INPUT] = input_type.reader(input_length)
    if len(sources) == 1:
        [source] = sources
        unreadable = Status.BAD_INPUT if source == INPUT else Status.MODEL_ERROR
        return Codec(readers[source], lambda x: [_example(source, x, input_type)], write, unreadable)
    return Codec(_joined(readers), lambda x: _examples(sources, x, input_type), write, Status.MODEL_ERROR)


def _joined(readers: Mapping[str, _Read]) -> _Read:
    """Reads a payload with one value of each source into a dict."""

    def read(values: list[Value]) -> dict[str, Any]:
        if [v.name for v in values] != list(readers):
            came = ", ".join(repr(v.name) for v in values) or "nothing"
            raise ValueError(f"this stage takes {', '.join(map(repr, readers))}, and got {came}")
        return {v.name: readers[v.name]([v]) for v in values}

    return read


def _read_one(values: list[Value]) -> Any:
    if len(values) != 1:
        raise ValueError(f"this stage takes one value, and got {len(values)}")
    return read(values[0])


def _example(source: str, x: Any, input_type: InputType | None) -> Value:
    return input_type.value(x) if input_type and source == INPUT else value(x)


def _examples(sources: Sequence[str], x: Any, input_type: InputType | None) -> list[Value]:
    if not isinstance(x, dict) or x.keys() != set(sources):
        raise BadInput(f"an example for this stage is a dict of {', '.join(map(repr, sources))}")
    return [_example(source, x[source], input_type)._replace(name=source) for source in sources]


def encode(x: Any) -> bytes:
    """The payload of an output for the stages behind. It raises TypeError for what cannot be pickled."""
    v = value(x)
    if v.dtype in _WHOLE:
        return payload.encode_one(v.dtype, v.data)  # type: ignore[arg-type] # as value makes it
    return payload.encode([v])


def value(x: Any) -> Value:
    kind = type(x)  # exactly: a subclass would not come back as itself
    if kind is str:
        try:
            return Value(DType.STRING, (), x.encode())
        except UnicodeEncodeError:
            return _pickled(x)
    if kind is bytes:
        return Value(DType.UINT8, (len(x),), x)
    return (numpy is not None and kind is numpy.ndarray and _tensor(x)) or _pickled(x)


def _tensor(x: Any) -> Value | None:
    """A numpy array as a tensor; None for one that would not be the same behind the wire."""
    dtype = _TENSORS.get(x.dtype)
    shape = (1, *x.shape) if dtype == DType.UINT8 else x.shape
    if dtype is None or not x.ndim or not x.size or len(shape) > MAX_DIMENSIONS:
        return None
    return Value(dtype, shape, x.ravel().view("u1").data)  # row-major, without a copy where it is so already


def _pickled(x: Any) -> Value:
    try:
        return Value(DType.OPAQUE, (), pickle.dumps(x, _PROTOCOL))
    except Exception as e:  # a class may raise anything when it is pickled
        raise TypeError(f"a {type(x).__name__} cannot be passed on to the next stage: {e}") from None


def read(v: Value) -> Any:
    """What a stage has written; numbers, nested lists and what JSON says, too, which stages in other languages may
    write. It is not for what comes from outside of the pipeline: see codec."""
    if v.dtype == _OPAQUE:
        return pickle.loads(v.data)
    if v.dtype == DType.UINT8 and len(v.shape) == 1:
        return bytes(v.data)
    if v.dtype in _ARRAYS and v.shape:
        skip = v.dtype == DType.UINT8 and v.shape[0] == 1
        return numpy.frombuffer(v.data, _ARRAYS[DType(v.dtype)]).reshape(v.shape[skip:])
    return decode(v)
