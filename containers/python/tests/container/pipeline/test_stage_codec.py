"""What travels between stages comes back as it was, and nothing else is ever unpickled."""

import datetime
import pickle
import random
from array import array
from contextlib import suppress

import pytest

from topsail import Output
from topsail.container import encoding
from topsail.container.input_type import BYTES, DOUBLES, STRINGS
from topsail.container.pipeline import stage_codec
from topsail.optional import numpy
from topsail.output import BadInput
from topsail.protocol import payload
from topsail.protocol.constants import DType, Status
from topsail.protocol.cursor import Cursor
from topsail.protocol.errors import ProtocolError
from topsail.protocol.payload import Value


def over_the_wire(x):
    """A value as the next stage gets it, and the type in which it travelled."""
    cursor = Cursor(memoryview(stage_codec.encode(x)))
    [value] = payload.decode(cursor)
    assert cursor.left == 0
    return stage_codec.read(value), value.dtype


NATIVE = [("text", 16), ("", 16), ("ä\0", 16), (b"", 1), (b"\0\xff", 1)]
PICKLED = [
    0,
    -(1 << 80),
    2.5,
    True,
    None,
    [1, [2.0, "x"]],
    (1, 2),
    {"a": {1, 2}},
    bytearray(b"x"),
    array("d", [1.5]),
    "\ud800",  # which UTF-8 cannot say
    datetime.date(2026, 11, 20),
    Output(3, confidence=0.5),
]


@pytest.mark.parametrize(("x", "dtype"), NATIVE + [(x, DType.OPAQUE) for x in PICKLED], ids=lambda x: repr(x)[:30])
def test_values_come_back_equal_in_type(x, dtype):
    got, travelled = over_the_wire(x)
    assert got == x
    assert type(got) is type(x)
    assert travelled == dtype


if numpy:
    np = numpy
    ARRAYS = [
        (np.array([True, False]), DType.BOOL),
        (np.arange(6, dtype="u1"), DType.UINT8),
        (np.arange(6, dtype="u1").reshape(1, 6), DType.UINT8),
        (np.arange(6, dtype="u1").reshape((1,) * 6 + (6,)), DType.UINT8),
        (np.arange(6, dtype="u1").reshape((1,) * 7 + (6,)), DType.OPAQUE),  # one dimension more does not fit
        (np.arange(6, dtype="i4").reshape(2, 3).T, DType.INT32),
        (np.arange(6, dtype="i8")[::-2], DType.INT64),
        (np.linspace(0, 1, 5, dtype="f4"), DType.FLOAT32),
        (np.array([1.5, np.inf]), DType.FLOAT64),
        (np.zeros((1,) * 8), DType.FLOAT64),
        (np.arange(3, dtype=">i4"), DType.OPAQUE),
        (np.arange(3, dtype="i2"), DType.OPAQUE),
        (np.arange(3, dtype="u4"), DType.OPAQUE),
        (np.array(["a", "b"]), DType.OPAQUE),
        (np.array([1, None], dtype=object), DType.OPAQUE),
        (np.zeros((2, 0)), DType.OPAQUE),
        (np.array(5), DType.OPAQUE),
        (np.zeros((1,) * 9), DType.OPAQUE),
        (np.ma.masked_array([1.0]), DType.OPAQUE),
        (np.float64(1.5), DType.OPAQUE),
        (np.str_("x"), DType.OPAQUE),
    ]

    @pytest.mark.parametrize(("x", "dtype"), ARRAYS, ids=lambda x: repr(x)[:30])
    def test_arrays_come_back_equal_in_type(x, dtype):
        got, travelled = over_the_wire(x)
        assert travelled == dtype
        assert type(got) is type(x)
        assert got.dtype == x.dtype
        assert got.shape == x.shape
        assert np.all(got == x)

    def test_arrays_are_not_copied_on_their_way_in():
        got, _ = over_the_wire(np.arange(5.0))
        assert not got.flags.owndata
        assert not got.flags.writeable

    def test_random_arrays():
        rng = random.Random(3)
        for _ in range(500):
            dtype = rng.choice(["?", "u1", "i1", "i4", "i8", "f4", "f8", "f2", ">f8"])
            shape = [rng.randrange(1, 4) for _ in range(rng.randrange(1, 9))]
            x = np.frombuffer(rng.randbytes(6561 * 8), "u1")[: int(np.prod(shape))].reshape(shape).astype(dtype)
            got, _ = over_the_wire(x)
            assert (got.dtype, got.shape) == (x.dtype, x.shape)
            assert (got == x).all()


def test_what_cannot_be_pickled_says_so():
    with pytest.raises(TypeError, match="a generator cannot be passed on to the next stage: cannot pickle"):
        stage_codec.encode(x for x in ())


# Forms.


class Canary:
    """Sings when it is unpickled."""

    sang = False

    def __reduce__(self):
        return _sing, ()


def _sing():
    Canary.sang = True


def codec_of(sources, kind=STRINGS, length=0):
    return stage_codec.codec(sources, kind, length, stage_codec.encode)


OPAQUE = Value(DType.OPAQUE, (), pickle.dumps(Canary()))


@pytest.mark.parametrize("kind", [STRINGS, BYTES, DOUBLES])
@pytest.mark.parametrize("sources", [["input"], ["input", "a"], ["a", "input"]])
def test_a_query_is_never_unpickled(sources, kind):
    values = [(OPAQUE if s == "input" else stage_codec.value(1))._replace(name=s) for s in sources]
    if len(sources) == 1:
        values = [OPAQUE]
    Canary.sang = False
    with pytest.raises(BadInput, match=f"takes one input of type {kind.name}, and got opaque"):
        codec_of(sources, kind).read(values)
    assert not Canary.sang
    codec_of(["a"]).read([OPAQUE])
    assert Canary.sang  # the bird is alive


def test_a_join_is_a_dict_in_its_order():
    joined = codec_of(["b", "input", "a"])
    values = joined.example({"a": [1], "input": "query", "b": b"x"})
    assert [(v.name, v.dtype) for v in values] == [("b", 1), ("input", 16), ("a", 18)]
    got = joined.read(values)
    assert list(got.items()) == [("b", b"x"), ("input", "query"), ("a", [1])]


@pytest.mark.parametrize("names", [[], ["a"], ["b", "a"], ["a", "b", "c"], ["a", "a"], ["", ""]])
def test_a_join_of_others(names):
    with pytest.raises(ValueError, match="this stage takes 'a', 'b', and got"):
        codec_of(["a", "b"]).read([stage_codec.value(1)._replace(name=n) for n in names])


def test_one_source_gives_one_value():
    for values in ([], [stage_codec.value(1)] * 2):
        with pytest.raises(ValueError, match="this stage takes one value, and got"):
            codec_of(["a"]).read(values)


@pytest.mark.parametrize("example", [1, {"a": 1}, {"a": 1, "b": 2, "c": 3}])
def test_an_example_of_a_join(example):
    with pytest.raises(BadInput, match="an example for this stage is a dict of 'a', 'b'"):
        codec_of(["a", "b"]).example(example)


def test_whose_fault_it_is():
    assert codec_of(["input"]).unreadable == Status.BAD_INPUT
    assert codec_of(["a"]).unreadable == codec_of(["a", "input"]).unreadable == Status.MODEL_ERROR


def test_stages_in_other_languages():
    assert stage_codec.read(payload.decode(Cursor(memoryview(encoding.encode(3))))[0]) == 3
    assert stage_codec.read(payload.decode(Cursor(memoryview(encoding.encode({"a": [1]}))))[0]) == {"a": [1]}


# Bytes that make no sense. Random ones are kept from pickle, which may do anything with them.


def test_values_that_make_no_sense():
    rng = random.Random(9)
    good = [stage_codec.encode(x) for x in ("text", b"bytes")]
    if numpy:
        good += [stage_codec.encode(x) for x in (numpy.arange(4.0), numpy.ones((2, 3), "u1"))]
    readers = [codec_of(sources, kind).read for sources in (["a"], ["a", "input"]) for kind in (STRINGS, DOUBLES)]
    read = 0
    for _ in range(5000):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 4, 5, 6, 16, 17, 255, rng.randrange(256)))
        try:
            values = payload.decode(Cursor(memoryview(bytes(data))))
        except ProtocolError:
            continue
        for reader in readers if all(v.dtype != DType.OPAQUE for v in values) else ():
            with suppress(ValueError):  # BadInput and UnicodeDecodeError are some
                reader(values)
                read += 1
    assert read > 500


def test_pickles_that_are_cut():
    whole = pickle.dumps([{"a": 1.5}, "text", b"bytes"], 5)
    for end in range(len(whole)):
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError)):
            stage_codec.read(Value(DType.OPAQUE, (), memoryview(whole)[:end]))
