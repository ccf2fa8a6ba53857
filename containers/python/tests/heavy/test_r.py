"""R itself, with jsonlite: what an R file gets, and what becomes of what it returns."""

import pytest
from bundles import unpacked

from topsail import testing
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.r import RError
from topsail.runtime.refusal import Refused

SUMS = "predict <- function(inputs) { print('chatter'); cat('more\\n'); sapply(inputs, sum) }"


def loaded(tmp_path, text, **files):
    content = {"model.R": text.encode()} | {name: text.encode() for name, text in files.items()}
    return load(Folder(unpacked(tmp_path, "r", "model.R", content)))


def outputs(model, inputs, kind="doubles"):
    answers = testing.run(model, inputs, kind)
    return [a.output if a.error is None else a.error for a in answers]


def test_numbers(tmp_path):
    model = loaded(tmp_path, SUMS)
    assert model.predict([_vector(1, 2.5), _vector(3)]) == [3.5, 3]
    assert model.predict([_vector(1 / 3)]) == pytest.approx([1 / 3], rel=1e-14)  # jsonlite writes 15 digits
    assert outputs(model, [[1, 2], [4, 5], [6, 7]], "ints") == [3, 9, 13]


def test_one_input_of_one_number(tmp_path):
    assert outputs(loaded(tmp_path, SUMS), [[7.0]]) == [7]


def test_texts(tmp_path):
    text = "predict <- function(inputs) lapply(inputs, toupper)"
    assert outputs(loaded(tmp_path, text), ["één", "b"], "strings") == ["ÉÉN", "B"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("do.call(rbind, inputs)", [[1, 2], [3, 4]]),
        ("factor(c('yes', 'no'))", ["yes", "no"]),
        ("list(list(label = 'a', score = 0.5), NULL)", [{"label": "a", "score": 0.5}, None]),
        ("c(x = 1, y = NA)", [1, None]),
        ("c(TRUE, FALSE)", [True, False]),
    ],
)
def test_outputs(tmp_path, body, expected):
    model = loaded(tmp_path, f"predict <- function(inputs) {body}")
    assert model.predict([_vector(1, 2), _vector(3, 4)]) == expected
    model.teardown()


def test_errors(tmp_path):
    model = loaded(
        tmp_path, "predict <- function(inputs) if (length(inputs) > 1) stop('too many') else quit(status = 5)"
    )
    with pytest.raises(RError, match="too many"):
        model.predict([_vector(1), _vector(2)])
    with pytest.raises(RError, match="R ended with status 5"):
        model.predict([_vector(1)])
    with pytest.raises(RError, match="too many"):
        model.predict([_vector(1), _vector(2)])
    model.teardown()


def test_files_beside_it(tmp_path):
    text = "source('rates.R'); predict <- function(inputs) lapply(inputs, function(x) sum(x) * rate)"
    assert outputs(loaded(tmp_path, text, **{"rates.R": "rate <- 10"}), [[1.5]]) == [15]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x <- 1", "it defines no function predict"),
        ("library(nothing)", "nothing"),
        ("predict <- function(", "unexpected end of input"),
        ("quit(status = 7)", "R ended with status 7"),
    ],
)
def test_files_that_cannot_be_served(tmp_path, text, says):
    with pytest.raises(Refused, match=f"R could not load model.R: .*{says}"):
        loaded(tmp_path, text)


def _vector(*values):
    from topsail.input_type import DOUBLES

    return DOUBLES.reader()([DOUBLES.value(list(values))])
