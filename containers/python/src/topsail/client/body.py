"""Bodies as JSON: bytes as base64, arrays and rows as numbers, without a Python object for each.

Every number is one that reads back to the same double, also those of float32 and float16: an array arrives as the same
values whether the app takes doubles or floats.
"""

from __future__ import annotations

import base64
import json
import secrets
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from typing import Any

from ..optional import find
from .errors import BadRequest

orjson = find("orjson")


def encoded(body: Any) -> bytes:
    """It raises BadRequest for what JSON cannot say, as NaN."""
    try:
        return _fast(body) if orjson is not None else _plain(body)
    except (ValueError, TypeError, OverflowError, RecursionError) as e:
        raise BadRequest(f"this cannot be sent: {e}") from None


def _fast(body: Any) -> bytes:
    def default(value: Any) -> Any:
        value = _sendable(value)
        return orjson.Fragment(_dumped(value)) if _is_array(value) else value

    try:
        said: bytes = orjson.dumps(body, default, orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError:
        return _plain(body)  # which takes larger integers, keys that are numbers, and lone surrogates, or says why not
    return _plain(body) if b"null" in said else said  # it may stand for NaN, or only be a word in a text


def _dumped(array: Any) -> bytes:
    if array.dtype.kind == "f":
        array = array.astype("float64")  # shorter decimals would not be the same doubles
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    said: bytes = orjson.dumps(native, option=orjson.OPT_SERIALIZE_NUMPY)
    return said


def _plain(body: Any) -> bytes:
    """By the standard library, but for arrays of floats: the place of each is held by a word that is in no body."""
    word, arrays = secrets.token_hex(16), []

    def default(value: Any) -> Any:
        value = _sendable(value)
        if not _is_array(value):
            return value
        if value.dtype.kind != "f":
            return value.tolist()
        arrays.append(_digits(value))
        return word

    said = json.dumps(body, default=default, allow_nan=False, separators=(",", ":"))
    pieces = said.split(f'"{word}"')
    return "".join([pieces[0], *(part for pair in zip(arrays, pieces[1:], strict=True) for part in pair)]).encode()


def _digits(array: Any) -> str:
    """The numbers of an array of floats, nested as its axes are. 17 digits are enough for any double; whole
    numbers keep their point, as apps of ints refuse it."""
    numpy = sys.modules["numpy"]
    array = array.astype("float64")
    whole = (array == numpy.trunc(array)) & (abs(array) < 1e16)
    mixed = numpy.where(whole, "%.1f", "%.17g").ravel().tolist() if whole.any() else repeat("%.17g")
    return _nested(iter(mixed), array.shape) % tuple(array.ravel().tolist())


def _nested(texts: Iterator[str], shape: Sequence[int]) -> str:
    inner = shape[1:]
    parts = (_nested(texts, inner) for _ in range(shape[0])) if inner else islice(texts, shape[0])
    return "[" + ",".join(parts) + "]"


def _sendable(value: Any) -> Any:
    """What stands for a value that JSON does not have: a str, a list, a number, or an array of finite numbers."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if hasattr(value, "to_numpy"):  # a row or a table of pandas or polars
        value = value.to_numpy()
    if _is_array(value) and not sys.modules["numpy"].isfinite(value).all():
        raise ValueError("it has NaN or infinity in it, which JSON has not")
    if _is_array(value):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no input: use numbers, a list or array of them, str or bytes")


def _is_array(value: Any) -> bool:
    """Whether it is an array of numbers or truths, with an axis at least."""
    numpy = sys.modules.get("numpy")  # who has an array has imported it
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim > 0 and value.dtype.kind in "biuf"
