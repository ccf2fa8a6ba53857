"""R itself, with jsonlite: what an R file gets, what becomes of what it returns, and how models of R are deployed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bundles import unpacked

import topsail
from topsail import bundle, testing
from topsail.deploy.failure import DeployFailed
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.r import RError

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
    with pytest.raises(PermanentFailure, match=f"R could not load model.R: .*{says}"):
        loaded(tmp_path, text)


# Deploying: from R, with its own script, and from Python.

SCRIPT = Path(topsail.__file__).parents[3] / "r" / "topsail.R"
SESSION = """
model <- lm(dist ~ speed, cars)
rounded <- function(x) round(x, digits)
digits <- 2
stopping <- function(inputs) rounded(predict(model, data.frame(speed = unlist(inputs))))
"""


def r_says(text, *, status=0, environment=None):
    """Runs a session of R that has the script, and returns what it says."""
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", f"source({str(SCRIPT)!r})\n{text}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_a_model_of_a_session(tmp_path):
    """What its function uses comes along, and its own `predict` is that of R."""
    r_says(SESSION + f"topsail_save({str(tmp_path / 'saved')!r}, stopping)")
    files = {p.name: p.read_bytes() for p in (tmp_path / "saved").iterdir()}
    model = load(Folder(unpacked(tmp_path, "r", "model.R", files)))
    assert outputs(model, [[10.0], [20.0]]) == [21.74, 61.07]


def test_one_bad_input_of_a_batch(tmp_path):
    """Errors of R are those of their inputs alone."""
    text = "predict <- function(inputs) lapply(inputs, function(x) if (x < 0) stop('below zero') else sqrt(x))"
    answers = testing.run(loaded(tmp_path, text), [[4.0], [-1.0], [9.0]], "doubles")
    assert [a.output for a in answers] == [2, None, 3]
    assert "below zero" in answers[1].error


def deployed(management):
    return bundle.read([*management.artifacts.values()][-1])


def test_deploying_from_r(management):
    environment = {
        **os.environ,
        "TOPSAIL_URL": management.url,
        "TOPSAIL_ADMIN_URL": management.url,
        "PYTHONPATH": str(Path(topsail.__file__).parents[1]),
    }
    python = f"python = {sys.executable!r}"
    said = r_says(
        SESSION + f"topsail_deploy('stopping', stopping, 10, replicas = 0, {python})", environment=environment
    )
    assert "its example gives" in said
    manifest = deployed(management).manifest
    assert (manifest.runtime, manifest.entry, manifest.requirements) == ("r", "model.R", ())
    assert (manifest.input_type, manifest.example) == ("doubles", [10])
    said = r_says(
        f"topsail_deploy('broken', function(inputs) stop('oh no'), 'a text', {python})",
        environment=environment,
        status=1,
    )
    assert "oh no" in said and "broken could not be deployed" in said


def test_deploying_a_file(client, management, tmp_path):
    file = tmp_path / "sums.R"
    file.write_text(SUMS)
    topsail.deploy_r("sums", file, [1.0, 2.0], seconds=5, client=client, progress=False, replicas=0)
    deployed(management).unpack(tmp_path / "deployed")
    assert outputs(load(Folder(tmp_path / "deployed")), [[1.0, 2.5]]) == [3.5]
    said = deployed(management).manifest
    assert (said.entry, said.options, said.input_length) == ("sums.R", {"seconds": "5"}, 0)


def test_what_cannot_be_deployed(client, tmp_path):
    def deploy(path, example=(1.0,)):
        topsail.deploy_r("sums", path, list(example), client=client, progress=False)

    with pytest.raises(DeployFailed, match="has no model.R: make it with topsail_save in R, or name a file"):
        deploy(tmp_path)
    with pytest.raises(DeployFailed, match="'sums.py' is not a file .R"):
        deploy("sums.py")
    with pytest.raises(DeployFailed, match="cannot be read: No such file"):
        deploy(tmp_path / "none.R")
    file = tmp_path / "sums.R"
    file.write_text("x <- 1")
    with pytest.raises(DeployFailed, match="R could not load sums.R: it defines no function predict"):
        deploy(file)


def _vector(*values):
    from topsail.container.input_type import DOUBLES

    return DOUBLES.reader()([DOUBLES.value(list(values))])
