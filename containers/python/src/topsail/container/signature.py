"""Signatures: the named inputs and outputs of a model version, with element types and shapes.

A model with a signature gets a dict for each query, and may return one. With numpy a tensor is a numpy array of its
type and shape (bfloat16, which numpy does not know, comes as float32); without numpy it is a list, nested as the shape
is. A scalar is a Python number, a string is a str, bytes are bytes, json is what the JSON says.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from struct import Struct, error
from typing import Any

from ..optional import numpy
from ..output import BadInput
from ..protocol import payload
from ..protocol.constants import DType
from ..protocol.payload import Value
from .codec import Codec
from .encoding import plain_json, value_and_fields

_LENGTH = Struct("<I")

# The bounds of a signature, as serving/signature.go has them.
_MOST_TENSORS = 64  # inputs, and outputs
_LONGEST_NAME = 255  # bytes
_MOST_DIMENSIONS = 8
_LARGEST_DIMENSION = 1 << 31


@dataclass(frozen=True)
class _Element:
    dtype: DType
    numpy: str = ""  # its name in numpy; empty for what has no fixed size
    typecode: str = ""  # of array.array


_ELEMENTS = {
    "bool": _Element(DType.BOOL, "?", "B"),
    "int8": _Element(DType.INT8, "i1", "b"),
    "int16": _Element(DType.INT16, "<i2", "h"),
    "int32": _Element(DType.INT32, "<i4", "i"),
    "int64": _Element(DType.INT64, "<i8", "q"),
    "uint8": _Element(DType.UINT8, "u1", "B"),
    "uint16": _Element(DType.UINT16, "<u2", "H"),
    "uint32": _Element(DType.UINT32, "<u4", "I"),
    "uint64": _Element(DType.UINT64, "<u8", "Q"),
    "float16": _Element(DType.FLOAT16, "<f2"),
    "bfloat16": _Element(DType.BFLOAT16, "<u2"),
    "float32": _Element(DType.FLOAT32, "<f4", "f"),
    "float64": _Element(DType.FLOAT64, "<f8", "d"),
    "bytes": _Element(DType.BLOB),
    "string": _Element(DType.STRING),
    "json": _Element(DType.JSON),
}
NUMBERS = frozenset(name for name, element in _ELEMENTS.items() if element.numpy)  # types of arrays, by numpy's names


@dataclass(frozen=True)
class Tensor:
    """One input or output."""

    name: str
    type: str
    shape: tuple[int, ...] = ()  # of one query; -1: any length

    def __str__(self) -> str:
        return self.type + (f"[{','.join(map(str, self.shape))}]" if self.shape else "")

    def document(self) -> dict[str, Any]:
        """As JSON says it."""
        return {"name": self.name, "type": self.type} | ({"shape": list(self.shape)} if self.shape else {})

    def check(self) -> None:
        """It raises ValueError for what Topsail refuses."""
        if not 0 < len(self.name.encode()) <= _LONGEST_NAME or any(c < " " for c in self.name):
            raise ValueError(f"{self.name!r}: a name has 1 to {_LONGEST_NAME} bytes and no control characters")
        if self.type not in _ELEMENTS:
            raise ValueError(f"{self.name!r}: the type {self.type!r} is unknown: use {', '.join(_ELEMENTS)}")
        if self.type == "json" and self.shape:
            raise ValueError(f"{self.name!r}: json has no shape: the JSON says it")
        if len(self.shape) > _MOST_DIMENSIONS:
            raise ValueError(f"{self.name!r}: the shape has more than {_MOST_DIMENSIONS} dimensions")
        if not all(-1 <= n < _LARGEST_DIMENSION for n in self.shape):
            raise ValueError(f"{self.name!r}: a dimension is -1, for any length, or 0 and above")

    def zeros(self) -> Any:
        """The smallest value that fits, of zeros or empty texts."""
        value: Any = {"string": "", "bytes": b"", "bool": False, "json": None}.get(self.type, 0)
        for n in reversed(self.shape):
            value = [value] * (1 if n < 0 else n)
        return value

    def read(self, value: Value) -> Any:
        """What the model gets. It raises BadInput for a value of another type or shape."""
        element = _ELEMENTS[self.type]
        fits = value.dtype == element.dtype and len(value.shape) == len(self.shape)
        if not fits or any(want not in (-1, is_) for want, is_ in zip(self.shape, value.shape, strict=True)):
            raise BadInput(f"{self.name!r} must be {self}, and is {_describe(value)}")
        if not element.numpy:
            return self._read_text(value)
        if not self.shape:
            return _scalar(self.type, bytes(value.data))
        if numpy is None:
            return _nest(_numbers(self.type, bytes(value.data)), value.shape)
        x = numpy.frombuffer(value.data, numpy.dtype(element.numpy)).reshape(value.shape)
        return (x.astype("<u4") << 16).view("<f4") if self.type == "bfloat16" else x

    def _read_text(self, value: Value) -> Any:
        try:
            if self.type == "json":
                return json.loads(bytes(value.data))
            convert: Callable[[Any], Any] = bytes if self.type == "bytes" else (lambda data: str(data, "utf-8"))
            if not self.shape:
                return convert(value.data)
            elements = [convert(x) for x in _split(value)]
        except ValueError as e:  # what is not UTF-8, too
            raise BadInput(f"{self.name!r}: {e}") from None
        if numpy is None:
            return _nest(elements, value.shape)
        x = numpy.empty(len(elements), object)
        x[:] = elements
        return x.reshape(value.shape)

    def write(self, x: Any) -> Value:
        """What goes out for what the model returned. It raises TypeError or ValueError, for people."""
        element = _ELEMENTS[self.type]
        if self.type == "json":
            return Value(DType.JSON, (), plain_json(x), self.name)
        if not element.numpy:
            return self._write_text(x, element.dtype)
        shape, data = self._numbers(x, element) if numpy is not None else _plain_numbers(self.type, x)
        self._check(shape)
        return Value(element.dtype, shape, data, self.name)

    def _numbers(self, x: Any, element: _Element) -> tuple[tuple[int, ...], bytes]:
        a = numpy.asarray(x)
        want = numpy.dtype("<f4" if self.type == "bfloat16" else element.numpy)
        integers = a.dtype.kind in "iu" and want.kind in "iu"
        if not (_within(a, want) if integers else numpy.can_cast(a.dtype, want, "same_kind")):
            raise TypeError(f"output {self.name!r} must be {self}, and is {a.dtype}: convert it with .astype")
        a = a.astype(want, copy=False)
        if self.type == "bfloat16":
            bits = a.view("<u4").astype("<u8")
            a = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
        return a.shape, a.tobytes()  # tobytes is row-major always

    def _write_text(self, x: Any, dtype: DType) -> Value:
        if not self.shape:
            return Value(dtype, (), _text(self, x), self.name)
        shape, elements = flat(x)
        self._check(shape)
        parts = [_text(self, e) for e in elements]
        return Value(dtype, shape, b"".join(_LENGTH.pack(len(p)) + p for p in parts), self.name)

    def _check(self, shape: Sequence[int]) -> None:
        if len(shape) != len(self.shape) or any(
            want not in (-1, is_) for want, is_ in zip(self.shape, shape, strict=True)
        ):
            raise ValueError(f"output {self.name!r} must be {self}, and has shape {list(shape)}")


@dataclass(frozen=True)
class Signature:
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON says it, which Topsail reads and writes."""
        parts = {"inputs": self.inputs, "outputs": self.outputs}
        return {name: [t.document() for t in tensors] for name, tensors in parts.items() if tensors}

    def check(self) -> None:
        """It raises ValueError for what Topsail refuses."""
        for part, tensors in {"inputs": self.inputs, "outputs": self.outputs}.items():
            if len(tensors) > _MOST_TENSORS:
                raise ValueError(f"the signature has more than {_MOST_TENSORS} {part}")
            if len({t.name for t in tensors}) < len(tensors):
                raise ValueError(f"the signature has {part} of the same name: {', '.join(t.name for t in tensors)}")
            for t in tensors:
                t.check()

    def codec(self, queries: Codec) -> Codec:
        """The codec of a model with this signature; `queries` is the one that it would have without."""
        read, example = (self.read, self.example) if self.inputs else (queries.read, queries.example)
        return Codec(read, example, self.write if self.outputs else queries.write, queries.unreadable)

    def read(self, values: list[Value]) -> dict[str, Any]:
        """A query. It raises BadInput."""
        given = {v.name: v for v in values}
        if len(given) != len(self.inputs) or any(t.name not in given for t in self.inputs):
            wanted, came = (", ".join(map(repr, names)) for names in ([t.name for t in self.inputs], given))
            raise BadInput(f"this model takes {wanted}, and got {came or 'nothing'}")
        return {t.name: t.read(given[t.name]) for t in self.inputs}

    def example(self, x: Any) -> list[Value]:
        """The other way, for an example: a dict. It raises BadInput."""
        if not isinstance(x, Mapping) or set(x) != {t.name for t in self.inputs}:
            raise BadInput(f"the example must be a dict with {', '.join(repr(t.name) for t in self.inputs)}")
        try:
            return [t.write(x[t.name]) for t in self.inputs]
        except (TypeError, ValueError, OverflowError) as e:
            why = str(e).removeprefix("output ")  # it is written as an output would be
            raise BadInput(f"the example is no input of this model: {why}") from None

    def write(self, output: Any) -> bytes:
        """An output: a dict, or the value alone where there is only one."""
        output, fields = value_and_fields(output)
        named = isinstance(output, Mapping)
        if len(self.outputs) == 1 and not (named and set(output) == {self.outputs[0].name}):
            output = {self.outputs[0].name: output}
        elif not named:
            wanted = ", ".join(repr(t.name) for t in self.outputs)
            raise TypeError(f"the output must be a dict with {wanted}, and is of type {type(output).__name__}")
        missing = [t.name for t in self.outputs if t.name not in output]
        unknown = [name for name in output if all(t.name != name for t in self.outputs)]
        if missing or unknown:
            raise ValueError(
                "the outputs are not those of the signature: "
                + "; ".join(
                    text + ", ".join(map(repr, names))
                    for text, names in (("missing: ", missing), ("unknown: ", unknown))
                    if names
                )
            )
        return payload.encode([t.write(output[t.name]) for t in self.outputs]) + fields


def parse(text: str) -> Signature:
    """Reads the JSON that Topsail gives a container in TOPSAIL_SIGNATURE. It raises ValueError."""
    try:
        return of_document(json.loads(text))
    except ValueError as e:
        raise ValueError(f"the signature {text[:200]!r} cannot be read: {e}") from None


def of_document(document: Any) -> Signature:
    """The signature that JSON says. It raises ValueError."""
    try:
        return Signature(*(tuple(map(_tensor, document.get(part) or ())) for part in ("inputs", "outputs")))
    except KeyError as e:
        raise ValueError(f"a tensor has no {e}") from None
    except (AttributeError, TypeError) as e:
        raise ValueError(str(e)) from None


def _tensor(document: Any) -> Tensor:
    name, kind, shape = document["name"], document["type"], document.get("shape") or []
    if not isinstance(name, str) or not isinstance(shape, list) or any(type(n) is not int for n in shape):
        raise ValueError(f"the tensor {document!r} must have a name, a type and a shape, a list of whole numbers")
    if kind not in _ELEMENTS:
        raise ValueError(f"element type {kind!r} is unknown: it needs a newer topsail package")
    return Tensor(name, kind, tuple(shape))


def value_of(value: Value) -> Any:
    """A named value as Python has it: nested lists, a number, a text, bytes, or what JSON says."""
    kind = next(name for name, element in _ELEMENTS.items() if element.dtype == value.dtype)
    x = Tensor(value.name, kind, tuple(value.shape)).read(value)
    return x.tolist() if hasattr(x, "tolist") else x


def _describe(value: Value) -> str:
    name = next((n for n, e in _ELEMENTS.items() if e.dtype == value.dtype), f"dtype {value.dtype}")
    return name + (f"[{','.join(map(str, value.shape))}]" if value.shape else "")


def _split(value: Value) -> list[memoryview]:
    """The elements of a tensor of strings or bytes, whose form the payload has checked."""
    data, at, elements = memoryview(value.data), 0, []
    for _ in range(prod(value.shape)):
        (size,) = _LENGTH.unpack_from(data, at)
        elements.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return elements


def _scalar(type: str, data: bytes) -> Any:
    return _numbers(type, data)[0]


def _numbers(type: str, data: bytes) -> list[Any]:
    if type == "float16":
        return [x for (x,) in Struct("<e").iter_unpack(data)]
    if type == "bfloat16":
        return [
            x for (x,) in Struct("<f").iter_unpack(b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)))
        ]
    a = array(_ELEMENTS[type].typecode, data)
    if sys.byteorder == "big":
        a.byteswap()
    return [bool(x) for x in a] if type == "bool" else a.tolist()


def _nest(flat: list[Any], shape: Sequence[int]) -> Any:
    if len(shape) == 1:
        return flat
    step = prod(shape[1:])
    return [_nest(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def flat(x: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape and the elements of nested lists, or of an array. It raises ValueError for lists of several lengths."""
    if hasattr(x, "tolist"):
        x = x.tolist()
    if not isinstance(x, list | tuple):
        return (), [x]
    parts = [flat(e) for e in x]
    shapes = {shape for shape, _ in parts}
    if len(shapes) > 1:
        raise ValueError("the lists in it differ in length")
    return (len(x), *(shapes.pop() if shapes else ())), [e for _, elements in parts for e in elements]


def _plain_numbers(type: str, x: Any) -> tuple[tuple[int, ...], bytes]:
    shape, elements = flat(x)
    code = {"float16": "e", "float32": "f", "bfloat16": "f", "float64": "d"}.get(type) or _ELEMENTS[type].typecode
    try:
        data = Struct(f"<{len(elements)}{code}").pack(*elements)
    except error as e:
        raise TypeError(f"the output is not {type}: {e}") from None
    return shape, b"".join(data[i + 2 : i + 4] for i in range(0, len(data), 4)) if type == "bfloat16" else data


def _within(a: Any, want: Any) -> bool:
    limits = numpy.iinfo(want)
    return not a.size or (int(a.min()) >= limits.min and int(a.max()) <= limits.max)


def _text(t: Tensor, x: Any) -> bytes:
    if t.type == "string" and isinstance(x, str):
        return x.encode()
    if t.type == "bytes" and isinstance(x, bytes | bytearray | memoryview):
        return bytes(x)
    raise TypeError(f"output {t.name!r} must be {t}, and has a {type(x).__name__}")
