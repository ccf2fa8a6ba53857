"""METRICS: what a container counted."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from .cursor import U8, U16, U32, Cursor
from .field import encode_field
from .text import str8, str16

COUNTER, GAUGE, HISTOGRAM = 1, 2, 3

_F64 = Struct("<d")
_TOTALS = Struct("<QdH")  # count, sum, number of buckets
_BUCKET = Struct("<dQ")  # upper bound, count up to it
_HELP = 1
_LEAST = 4 + 1 + 1 + 2 + 8


class Series(NamedTuple):
    """One metric with one set of labels, as it stood when the report was made."""

    kind: int
    name: str
    labels: tuple[tuple[str, str], ...]
    help: str
    value: float  # a histogram's sum
    observed: int = 0  # histogram only, as are the buckets: (upper bound, count up to it)
    buckets: tuple[tuple[float, int], ...] = ()


def encode(series: Sequence[Series], max_frame: int) -> tuple[bytes, int]:
    """The report, and how many series went into it: those that would make it too large are left out."""
    parts: list[bytes] = []
    size = U32.size
    for s in series:
        entry = _encode_series(s)
        size += len(entry)
        if size > max_frame:
            break
        parts.append(entry)
    return U32.pack(len(parts)) + b"".join(parts), len(parts)


def _encode_series(s: Series) -> bytes:
    parts = [U8.pack(s.kind), str8(s.name), U16.pack(len(s.labels))]
    parts += [str8(key) + str16(value) for key, value in s.labels]
    if s.kind == HISTOGRAM:
        parts.append(_TOTALS.pack(s.observed, s.value, len(s.buckets)))
        parts += [_BUCKET.pack(*bucket) for bucket in s.buckets]
    else:
        parts.append(_F64.pack(s.value))
    if s.help:
        parts.append(encode_field(_HELP, s.help.encode("utf-8", "replace")))
    entry = b"".join(parts)
    return U32.pack(len(entry)) + entry


def decode(body: memoryview) -> list[Series]:
    """Reads a report, as the sidecar would: for tests."""
    cursor = Cursor(body)
    return [_decode_series(cursor.part("metrics entry")) for _ in range(cursor.count("metrics count", _LEAST))]


def _decode_series(entry: Cursor) -> Series:
    kind = entry.number(U8, "metric kind")
    name = entry.text(U8, "metric name")
    labels = tuple(
        (entry.text(U8, "label key"), entry.text(U16, "label value")) for _ in range(entry.number(U16, "label count"))
    )
    observed = 0
    buckets: list[Any] = []
    if kind == HISTOGRAM:
        observed, value, number = entry.unpack(_TOTALS, "histogram")
        buckets = [entry.unpack(_BUCKET, "bucket") for _ in range(number)]
    else:
        value = entry.unpack(_F64, "metric value")[0]
    help_text = str(dict(entry.fields("metric")).get(_HELP, b""), "utf-8", "replace")
    return Series(kind, name, labels, help_text, value, observed, tuple(buckets))
