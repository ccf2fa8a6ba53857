"""What inputs are as JSON: exactly the same numbers, with orjson and without."""

import json
import math

import pytest

import topsail
from topsail.client import body, requests

np = pytest.importorskip("numpy")


@pytest.fixture(params=["orjson", "without"], autouse=True)
def library(request, monkeypatch):
    assert body.orjson is not None, "pip install orjson, as tests/requirements.txt says"
    if request.param == "without":
        monkeypatch.setattr(body, "orjson", None)


def sent(value):
    """As a server reads it that takes all numbers for doubles."""
    return json.loads(requests.predict("app", value, {}).body, parse_int=float)["input"]


def same(read, array):
    """Bit by bit, the signs of zeros included."""
    assert np.array(read, float).tobytes() == np.asarray(array).astype(float).tobytes()


def bits(dtype, whole):
    """Random floats of all sizes, and all of float16."""
    array = np.arange(1 << 16, dtype=whole) if dtype == "float16" else random(whole)
    array = array.view(dtype)
    return array[np.isfinite(array)]


def random(dtype):
    info, generator = np.iinfo(dtype), np.random.default_rng(7)
    ends = np.array([info.min, info.max, 0, 1], dtype)
    return np.concatenate([generator.integers(info.min, info.max, 50_000, dtype, endpoint=True), ends])


@pytest.mark.parametrize(("dtype", "whole"), [("float16", "uint16"), ("float32", "uint32"), ("float64", "uint64")])
def test_floats_arrive_as_the_same_doubles_and_floats(dtype, whole):
    array = bits(dtype, whole)
    read = sent(array)
    same(read, array)
    assert np.array(read, float).astype(dtype).tobytes() == array.tobytes()
    same(sent(array.astype(array.dtype.newbyteorder(">"))), array)
    same(sent(array[::-2]), array[::-2])


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["int", "uint"])
def test_integers_of_every_width(width, sign):
    array = random(f"{sign}{width}")
    for given in (array, array.astype(array.dtype.newbyteorder(">")), array[::-3]):
        body = requests.predict("app", given, {}).body
        assert json.loads(body)["input"] == given.tolist()


def test_arrays_of_other_shapes_and_kinds():
    assert sent(np.array([True, False])) == [True, False]
    assert sent(np.float32(0.1)) == float(np.float32(0.1))
    assert (sent(np.array(2.5)), sent(np.array(3, ">i4")), sent(np.int8(-1))) == (2.5, 3, -1)
    assert (sent(np.array([])), sent(np.zeros((0, 3))), sent(np.zeros((2, 0), "float32"))) == ([], [], [[], []])
    cube = np.random.default_rng(1).random((2, 3, 4)).transpose(2, 0, 1)
    assert sent(cube) == cube.tolist()
    assert sent(np.array(["a", "b"])) == ["a", "b"]
    tenth = float(np.float32(0.1))
    nested = [np.array([0.1], "float32"), np.float32(0.1), {"x": np.array([1, 2])}]
    assert sent(nested) == [[tenth], tenth, {"x": [1, 2]}]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(bad):
    for given in (np.array([1, bad]), np.array([[1, bad]], "float32"), np.float16(bad), [1, [bad]], {"x": bad}):
        with pytest.raises(topsail.BadRequest, match="this cannot be sent"):
            sent(given)
    with pytest.raises(topsail.BadRequest, match="it has NaN or infinity in it, which JSON has not"):
        sent(np.array([bad], ">f4"))


@pytest.mark.parametrize("bad", [np.array([1j]), np.array([object()]), np.array(["2030-01-31"], "datetime64[D]")])
def test_arrays_of_what_json_has_not(bad):
    with pytest.raises(topsail.BadRequest, match="this cannot be sent"):
        sent(bad)


def test_the_same_of_what_orjson_takes_otherwise():
    assert sent("null and \ud800") == "null and \ud800"
    body = requests.predict("app", [2**70, {1: 2}, (1, None)], {}).body
    assert json.loads(body)["input"] == [2**70, {"1": 2}, [1, None]]


def test_whole_floats_keep_their_point():
    """An app of ints refuses them, whatever is installed here."""
    body = requests.predict("app", np.array([[1, -0.0, 0.5], [2**31, 3, -4]], "float32"), {}).body
    assert body == b'{"input":[[1.0,-0.0,0.5],[2147483648.0,3.0,-4.0]]}'


def test_rows_of_tables():
    class Row:
        """As a Series of pandas or polars."""

        def to_numpy(self):
            return np.array([0.1, 2], "float32")

    class Table:
        """As a DataFrame, whose iteration gives the names of columns."""

        ndim = 2

        def __iter__(self):
            return iter(["a", "b"])

        def to_numpy(self):
            return np.array([[1, 2], [3, 4]])

    tenth = float(np.float32(0.1))
    assert sent(Row()) == [tenth, 2]
    assert json.loads(requests.predict_batch("app", Table(), {}).body) == {"input_batch": [[1, 2], [3, 4]]}
    fed = requests.feedback("app", {"input": Row(), "label": np.float32(0.1), "query_id": np.int64(7)})
    assert json.loads(fed.body) == {"input": [tenth, 2], "label": tenth, "query_id": 7}
    many = requests.feedback_batch("app", [{"input": np.array([1.5], "float16"), "label": b"a"}])
    assert json.loads(many.body) == {"feedback_batch": [{"input": [1.5], "label": "YQ=="}]}
