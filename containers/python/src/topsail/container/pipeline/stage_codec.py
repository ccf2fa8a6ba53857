"""What travels between stages.

| from a stage                           | on the wire                                       | to the next stage       |
|----------------------------------------|---------------------------------------------------|-------------------------|
| str                                    | a string                                          | str                     |
| bytes                                  | a uint8 tensor of one dimension                   | bytes                   |
| numpy array of bool, int32, int64,     | a tensor; one of uint8 has a first dimension of 1 | the same, read-only: a  |
| float32, float64 or uint8              | more than the array, to tell it from bytes        | view of the message     |
| anything else                          | an opaque value: its pickle                       | what pickle makes of it |

An output of a stage is one value. The query's input is as many as its signature has, which a stage gets as a dict.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...optional import numpy
from ...output import BadInput
from ...protocol import payload
from ...protocol.constants import MAX_DIMENSIONS, DType, Status
from ...protocol.payload import Value
from ..codec import Codec, query_codec
from ..decoding import decode
from ..input_type import InputType
from ..signature import Signature
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
_Example = Callable[[Any], list[Value]]


def codec(
    sources: Sequence[str],
    input_type: InputType | None,
    input_length: int,
    write: Callable[[Any], bytes],
    signature: Signature | None = None,
) -> Codec:
    """The codec by which a stage takes its inputs, and gives its outputs by `write`. Without an input type the query's
    input travels as between stages, which is for a pipeline in one process only. With a signature of inputs it is a
    dict of them.

    Only what a stage has written is ever unpickled: it was pickled by a worker of the same program, and came by way of
    the sidecar, which takes it from none but the containers that know its token. A query's input comes from a stranger.
    It is read by its input type, which has no opaque values, wherever it goes in the pipeline.
    """
    readers: dict[str, _Read] = {source: _read_one for source in sources}
    examples: dict[str, _Example] = {source: lambda x: [value(x)] for source in sources}
    if input_type and INPUT in readers:
        query = query_codec(input_type, input_length)
        query = signature.codec(query) if signature else query
        readers[INPUT], examples[INPUT] = query.read, query.example
    if len(sources) == 1:
        [source] = sources
        unreadable = Status.BAD_INPUT if source == INPUT else Status.MODEL_ERROR
        return Codec(readers[source], examples[source], write, unreadable)
    return Codec(_joined(readers), lambda x: _joined_example(examples, x), write, Status.MODEL_ERROR)


def join(payloads: Mapping[str, list[Value]]) -> list[Value]:
    """What a stage with several sources gets: the values of each, named after it."""
    return [
        v._replace(name=f"{source}.{v.name}" if v.name else source) for source, given in payloads.items() for v in given
    ]


def _joined(readers: Mapping[str, _Read]) -> _Read:
    """Reads what join makes into a dict."""

    def read(values: list[Value]) -> dict[str, Any]:
        given: dict[str, list[Value]] = {}
        for v in values:
            source, _, name = v.name.partition(".")  # which no name of a stage has
            given.setdefault(source, []).append(v._replace(name=name))
        if list(given) != list(readers):
            came = ", ".join(map(repr, given)) or "nothing"
            raise ValueError(f"this stage takes {', '.join(map(repr, readers))}, and got {came}")
        return {source: readers[source](values) for source, values in given.items()}

    return read


def _read_one(values: list[Value]) -> Any:
    if len(values) != 1:
        raise ValueError(f"this stage takes one value, and got {len(values)}")
    return read(values[0])


def _joined_example(examples: Mapping[str, _Example], x: Any) -> list[Value]:
    if not isinstance(x, dict) or x.keys() != examples.keys():
        raise BadInput(f"an example for this stage is a dict of {', '.join(map(repr, examples))}")
    return join({source: example(x[source]) for source, example in examples.items()})


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
