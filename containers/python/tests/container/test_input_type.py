"""What models get to see."""

from array import array

import pytest

from topsail.container import input_type
from topsail.container.input_type import BYTES, CHAT, DOUBLES, FLOATS, INTS, STRINGS
from topsail.optional import numpy
from topsail.output import BadInput
from topsail.protocol.constants import DType
from topsail.protocol.payload import Value

CASES = [
    (BYTES, b"\0\1\xff", [0, 1, 255]),
    (INTS, [-(1 << 31), 0, (1 << 31) - 1], None),
    (FLOATS, [0.5, -2.0], None),
    (DOUBLES, [0.1, 1e300], None),
    (DOUBLES, [], None),
]


@pytest.mark.parametrize(("kind", "example", "elements"), CASES)
def test_vectors(kind, example, elements):
    got = kind.reader()([kind.value(example)])
    assert list(got) == (elements if elements is not None else example)
    if numpy:
        assert got.dtype == (numpy.int64 if kind is INTS else numpy.dtype(kind.typecode))
        assert got.flags.writeable is (kind is INTS)
    else:
        assert isinstance(got, bytes if kind is BYTES else array)


def test_products_of_integers_fit():
    """They travel in 32 bits, and models are trained on 64."""
    a, b = INTS.reader()([INTS.value([100_000, 100_000])])
    assert a * b == 10_000_000_000


def test_strings():
    assert STRINGS.reader()([STRINGS.value("grüße")]) == "grüße"


def test_a_vector_is_a_view_where_numpy_is():
    value = DOUBLES.value([1.0, 2.0])
    got = DOUBLES.reader()([value])
    if numpy:
        assert numpy.shares_memory(got, numpy.frombuffer(value.data, "u1"))
    else:
        assert got.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "values", "says"),
    [
        (DOUBLES, [FLOATS.value([1.0])], r"takes one input of type doubles, and got float32 of shape \[1\]"),
        (DOUBLES, [STRINGS.value("x")], "got string"),
        (STRINGS, [DOUBLES.value([1.0])], r"got float64 of shape \[1\]"),
        (DOUBLES, [Value(DType.FLOAT64, (), b"\0" * 8)], "got float64"),
        (DOUBLES, [Value(DType.FLOAT64, (1, 1), b"\0" * 8)], r"of shape \[1, 1\]"),
        (DOUBLES, [DOUBLES.value([1.0])] * 2, "got 2 values"),
        (DOUBLES, [], "got 0 values"),
        (STRINGS, [Value(DType.STRING, (), b"\xff")], "not UTF-8: invalid start byte at byte 0"),
    ],
)
def test_other_inputs_are_bad_inputs(kind, values, says):
    with pytest.raises(BadInput, match=says):
        kind.reader()(values)


def test_a_chat_request_is_an_object():
    request = {"messages": [{"role": "user", "content": "grüße"}], "max_tokens": 3}
    read = CHAT.reader()
    assert read([CHAT.value(request)]) == request
    text = b'{"messages":[]}'
    assert read([Value(DType.STRING, (), text)]) == read([Value(DType.JSON, (), text)]) == {"messages": []}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([Value(DType.JSON, (), b"{")], "the chat request is not valid JSON: "),
        ([Value(DType.JSON, (), b"[]")], "must be a JSON object"),
        ([Value(DType.JSON, (), b"[" * 100_000)], "nested too deeply"),
        ([Value(DType.STRING, (), b"\xff")], "not UTF-8"),
        ([DOUBLES.value([1.0])], r"takes one chat request, and got float64 of shape \[1\]"),
        ([], "got 0 values"),
    ],
)
def test_what_is_no_chat_request(values, says):
    with pytest.raises(BadInput, match=says):
        CHAT.reader()(values)


def test_the_length_is_checked_where_it_is_fixed():
    read = DOUBLES.reader(2)
    assert list(read([DOUBLES.value([1.0, 2.0])])) == [1.0, 2.0]
    with pytest.raises(BadInput, match="takes inputs of length 2, and got one of length 3"):
        read([DOUBLES.value([1.0, 2.0, 3.0])])


@pytest.mark.parametrize(
    ("kind", "example"),
    [
        (DOUBLES, "text"),
        (DOUBLES, [None]),
        (DOUBLES, 3),
        (INTS, [1.5]),
        (INTS, [1 << 31]),
        (BYTES, [256]),
        (STRINGS, [1]),
    ],
)
def test_examples_that_are_no_input(kind, example):
    with pytest.raises(BadInput, match=f"is no input of type {kind.name}"):
        kind.value(example)


@pytest.mark.parametrize(("name", "kind"), [("doubles", DOUBLES), ("d", DOUBLES), ("integers", INTS), ("str", STRINGS)])
def test_names(name, kind):
    assert input_type.parse(name) is kind


def test_an_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="'real' is unknown: use bytes, ints, floats, doubles, strings or chat"):
        input_type.parse("real")
