"""What is around a module for images; tests/heavy has modules and images."""

import json
import math

import numpy
import pytest

from topsail.runtime.failure import PermanentFailure
from topsail.runtime.torchserve import Classes, pixels


def test_the_five_likeliest_classes_by_name(tmp_path):
    names = tmp_path / "index_to_name.json"
    names.write_text(json.dumps({"0": ["n01440764", "tench"], "1": "goldfish", "2": []}))
    logits = numpy.log([[0.1, 0.4, 0.2, 0.15, 0.05, 0.06, 0.04], [0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]])
    one, two = Classes.read(names)(logits)
    assert one.value == pytest.approx({"goldfish": 0.4, "[]": 0.2, "3": 0.15, "tench": 0.1, "5": 0.06})
    assert list(one.value) == ["goldfish", "[]", "3", "tench", "5"]
    assert one.confidence == pytest.approx(0.4)
    assert list(two.value) == ["tench", "goldfish", "[]", "3", "4"]  # equal ones in their order


def test_names_of_older_archives(tmp_path):
    names = tmp_path / "index_to_name.json"
    names.write_text('{"object_type_names": ["tench", "goldfish"]}')
    [answer] = Classes.read(names)(numpy.log([[0.25, 0.75]]))
    assert answer.value == pytest.approx({"goldfish": 0.75, "tench": 0.25})


def test_classes_without_names(tmp_path):
    [answer] = Classes.read(tmp_path / "none.json")(numpy.log([[0.25, 0.75]]))
    assert answer.value == pytest.approx({"1": 0.75, "0": 0.25})


@pytest.mark.parametrize("text", ["[]", "{"])
def test_names_that_cannot_be_read(tmp_path, text):
    names = tmp_path / "index_to_name.json"
    names.write_text(text)
    with pytest.raises(PermanentFailure, match="is not valid JSON|must be an object"):
        Classes.read(names)


def test_classes_of_pixels():
    scores = numpy.zeros((2, 3, 1, 2))
    scores[0, 2, 0, 1] = math.log(2)
    first, second = pixels(scores)
    assert first.tolist() == [[[0, pytest.approx(1 / 3)], [2, pytest.approx(0.5)]]]
    assert second.shape == (1, 2, 2)
