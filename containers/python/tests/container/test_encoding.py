"""What a model may return, and what the gateway then sees."""

from array import array
from enum import IntEnum

import pytest

from topsail import Error, Output
from topsail.container.dry_run import _nest
from topsail.container.encoding import encode
from topsail.optional import numpy
from topsail.protocol import payload
from topsail.protocol.constants import DType
from topsail.protocol.cursor import Cursor


class Grade(IntEnum):
    GOOD = 3


def sent(output):
    """The type, the shape and the value of an output as the gateway sees it."""
    cursor = Cursor(memoryview(encode(output)))
    [value] = payload.decode(cursor)
    assert cursor.left == 0
    return DType(value.dtype), value.shape, _nest(value)


PLAIN = [
    (True, (DType.BOOL, (), True)),
    (3, (DType.INT64, (), 3)),
    (-(1 << 63), (DType.INT64, (), -(1 << 63))),
    (Grade.GOOD, (DType.INT64, (), 3)),
    (2.5, (DType.FLOAT64, (), 2.5)),
    (float("inf"), (DType.FLOAT64, (), float("inf"))),
    ("a text", (DType.STRING, (), "a text")),
    ("", (DType.STRING, (), "")),
    ('{"a": 1}', (DType.STRING, (), {"a": 1})),  # Clipper's rule: text that is JSON is nested
    ("NaN", (DType.STRING, (), "NaN")),  # which is not valid JSON
    (None, (DType.JSON, (), None)),
    ([1, 2.5, "x"], (DType.JSON, (), [1, 2.5, "x"])),
    ((1, 2), (DType.JSON, (), [1, 2])),
    ({"label": "ä", "scores": [0.5]}, (DType.JSON, (), {"label": "ä", "scores": [0.5]})),
    (array("d", [1.5, 2]), (DType.FLOAT64, (2,), [1.5, 2.0])),
    (array("f", [1.5]), (DType.FLOAT32, (1,), [1.5])),
    (array("i", [-1, 2]), (DType.INT32, (2,), [-1, 2])),
    (array("l", [-1, 2]), (DType.INT64, (2,), [-1, 2])),
    (array("B", []), (DType.UINT8, (0,), [])),
    (Output("x"), (DType.STRING, (), "x")),
]

if numpy:
    np = numpy
    PLAIN += [
        (np.float64(1.5), (DType.FLOAT64, (), 1.5)),
        (np.float32(1.5), (DType.FLOAT32, (), 1.5)),
        (np.float16(1.5), (DType.FLOAT32, (), 1.5)),
        (np.longdouble(1.5), (DType.FLOAT64, (), 1.5)),
        (np.int64(7), (DType.INT64, (), 7)),
        (np.int32(7), (DType.INT32, (), 7)),
        (np.int8(-7), (DType.INT32, (), -7)),
        (np.uint8(7), (DType.UINT8, (), 7)),
        (np.uint16(65535), (DType.INT32, (), 65535)),
        (np.uint32(1 << 31), (DType.INT64, (), 1 << 31)),
        (np.uint64(1 << 62), (DType.INT64, (), 1 << 62)),
        (np.bool_(True), (DType.BOOL, (), True)),
        (np.str_("x"), (DType.STRING, (), "x")),
        (np.arange(6.0).reshape(2, 3), (DType.FLOAT64, (2, 3), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])),
        (np.arange(6, dtype="i4").reshape(2, 3).T, (DType.INT32, (3, 2), [[0, 3], [1, 4], [2, 5]])),
        (np.arange(4.0)[::-2], (DType.FLOAT64, (2,), [3.0, 1.0])),
        (np.arange(3, dtype=">f8"), (DType.FLOAT64, (3,), [0.0, 1.0, 2.0])),
        (np.zeros((2, 0)), (DType.FLOAT64, (2, 0), [[], []])),
        (np.array([True, False]), (DType.BOOL, (2,), [True, False])),
        (np.array(["a", "b"]), (DType.JSON, (), ["a", "b"])),
        (np.ma.array([1, 2], mask=[0, 1]), (DType.JSON, (), [1, None])),
        (np.ma.array([1, 2]), (DType.INT64, (2,), [1, 2])),
        (np.ma.masked, (DType.JSON, (), None)),
        (np.array([1, "b", None], dtype=object), (DType.JSON, (), [1, "b", None])),
        ({"p": np.float32(0.5), "v": np.arange(2)}, (DType.JSON, (), {"p": 0.5, "v": [0, 1]})),
    ]


@pytest.mark.parametrize(("output", "seen"), PLAIN, ids=lambda x: repr(x)[:30])
def test_values(output, seen):
    assert sent(output) == seen


LOOP: list = []
LOOP.append(LOOP)

WRONG = [
    (b"x", TypeError, "bytes cannot be an output"),
    (memoryview(b"x"), TypeError, "bytes cannot be an output"),
    (object(), TypeError, "a object cannot be an output"),
    ({1, 2}, TypeError, "a set cannot be an output"),
    (1 << 63, OverflowError, "more than an int64 holds"),
    ([float("nan")], ValueError, "not JSON compliant"),
    (LOOP, ValueError, "Circular reference"),
    ("\ud800", UnicodeEncodeError, "surrogates"),
    (array("h", [1]), TypeError, "typecode 'h'"),
    (Output(1, confidence="high"), ValueError, "could not convert"),
    (Output(1, qualifiers={"k" * 256: 1}), ValueError, "longer than 255 bytes"),
    (Output(Output(1)), TypeError, "a Output cannot be an output"),
    (Error("no"), TypeError, "a Error cannot be an output"),
]

if numpy:
    WRONG += [
        (np.zeros(2, dtype=complex), TypeError, "an array of complex128 cannot be an output"),
        (np.zeros((1,) * 9), ValueError, "9 dimensions"),
        (np.array([1 << 63], dtype="u8"), OverflowError, "9223372036854775808 is more"),
        (np.array(["2026-11-20"], dtype="M8[D]"), TypeError, "datetime64"),
    ]


@pytest.mark.parametrize(("output", "error", "says"), WRONG, ids=lambda x: repr(x).partition(" at ")[0][:30])
def test_what_cannot_be_sent_says_so(output, error, says):
    with pytest.raises(error, match=says):
        encode(output)
