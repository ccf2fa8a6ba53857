"""Batches as arrays of the model's own type and size."""

import numpy as np
import pytest

from topsail.output import BadInput
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.matrix import cast, fixed_size, in_batches_of
from topsail.runtime.named import rows


@pytest.mark.parametrize(
    ("given", "dtype", "wanted"),
    [
        ([1.0, 2.0], "int64", [1, 2]),
        ([0.1], "float32", [np.float32(0.1)]),
        ([1e-60], "float32", [0.0]),
        ([float("inf")], "float16", [float("inf")]),
        ([1.0, 0.0], "bool", [True, False]),
        ([255], "uint8", [255]),
        ([2**40 + 1], "float32", [np.float32(2**40)]),
        ([], "uint8", []),
    ],
)
def test_what_fits(given, dtype, wanted):
    found = cast(np.array(given), dtype)
    assert found.dtype == dtype and found.tolist() == wanted


@pytest.mark.parametrize(
    ("given", "dtype", "said"),
    [
        ([[1.0], [1.7]], "int64", "int64, and 1.7 is none"),
        ([1e300], "int64", r"int64, and 1e\+300 is none"),
        ([2.0**63], "int64", "is none"),
        ([256], "uint8", "uint8, and 256 is none"),
        ([1, -1], "uint64", "uint64, and -1 is none"),
        ([2], "bool", "bool, and 2 is none"),
        ([1e300], "float32", r"float32, and 1e\+300 is none"),
        ([70000.0], "float16", "float16, and 70000.0 is none"),
        ([float("nan")], "int32", "nan is none"),
    ],
)
def test_what_does_not(given, dtype, said):
    with pytest.raises(BadInput, match=said):
        cast(np.array(given), dtype)


def test_texts_stay():
    assert cast(np.array(["a"], dtype=object), "object").tolist() == ["a"]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_batches_of_one_size(size):
    sizes = []

    def run(inputs):
        sizes.append(len(inputs))
        return [x * 2 for x in inputs]

    assert in_batches_of(size, run, [1, 2, 3]) == [2, 4, 6]
    assert set(sizes) == {size or 3}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_named_batches_of_one_size(size):
    def run(inputs):
        assert len(inputs["x"]) == size or not size
        return {"y": inputs["x"] * 2, "z": [str(len(t)) for t in inputs["t"]]}

    found = rows(run, {"x": np.array([1, 2, 3]), "t": np.array(["a", "bb", "c"], dtype=object)}, size)
    assert list(found["y"]) == [2, 4, 6] and found["z"] == ["1", "2", "1"]


def test_sizes_that_agree():
    assert fixed_size([("a", None), ("b", None)]) == 0
    assert fixed_size([("a", 4), ("b", None), ("c", 4)]) == 4
    for wrong in ([("a", 0)], [("a", 1), ("b", 4)]):
        with pytest.raises(PermanentFailure, match="have to have a row for each query"):
            fixed_size(wrong)
