"""The command line, as its own process."""

import json
import subprocess
import sys

import pytest
from sidecar import HERE, PATIENCE, Container, environment


def topsail(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "topsail", *arguments],
        cwd=HERE,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_without_topsail_it_says_what_to_do():
    _, err = topsail("models:first", code=1)
    assert err.startswith("topsail: TOPSAIL_SIDECAR is not set, so there is no sidecar to connect to.")
    assert "python -m topsail check" in err
    assert "Traceback" not in err


def test_check():
    out, _ = topsail("check", "models:first", "--example", "[1.5, 2]", "--example", "[3]")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["step", "inputs", "ms", "result"]
    assert [(line[:2], line[-2:]) for line in lines[2:5]] == [
        (["example", "0"], ["float64", "1.5"]),
        (["example", "1"], ["float64", "3.0"]),
        (["as", "a"], ["float64", "1.5"]),
    ]
    assert lines[-1] == ["all", "is", "well"]


def test_check_warms_up(tmp_path):
    (tmp_path / "loaded").touch()
    (tmp_path / "m.py").write_text(
        "from models import Slow\nimport models, pathlib\nmodels.FOLDER = pathlib.Path('.')\n"
    )
    out, _ = topsail("check", "m:Slow", "--chdir", str(tmp_path))
    assert "Slow takes doubles of length 2" in out
    assert "warm-up" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["models:first"], "there is nothing to try: give --example '[1.0, 2.0]', or the model a warmup method"),
        (["models:Many", "--example", "[100]"], "example 0: ValueError: 100 is too much"),
        (["models:Many", "--example", "[200]"], "example 0: ValueError: predict returned 0 outputs for 1 inputs"),
        (["models:Many", "--example", "[500]"], "example 0: TypeError: bytes cannot be an output"),
        (["models:first", "--example", "[NaN]"], "example 0: the output is NaN or infinite, which JSON cannot carry"),
        (["models:first", "--example", '"text"'], "the example 'text' is no input of type doubles"),
        (["models:Ints", "--input-type", "floats", "--example", "[1]"], "Ints takes ints, and is served with floats"),
        (["models:ColdBroken"], "warm-up failed for example 1 of 2: Error: cold"),
        (["models:Broken", "--example", "[1]"], "models:Broken failed: OSError: the weights are not there"),
        (["models:Nothing"], "models has no 'Nothing'"),
        (["nowhere:Nothing"], "there is no module 'nowhere'"),
    ],
)
def test_check_says_what_is_wrong_and_fails(arguments, says):
    _, err = topsail("check", *arguments, code=1)
    assert err.splitlines()[-1].startswith("topsail: " + says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "models:first", "--input-type", "real"], "input type 'real' is unknown: use bytes, ints"),
        (["check", "models:first", "--example", "text"], "'text' is not JSON"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_a_wrong_command_line(arguments, says):
    _, err = topsail(*arguments, code=2)
    assert says in err


def test_bench_as_a_table():
    out, _ = topsail("bench", "models:first", "--example", "[1]", "--seconds", "0.005", "--max", "8")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["batch", "p50", "ms", "p99", "ms", "inputs/s"]
    assert [line[0] for line in lines[1:]] == ["1", "2", "4", "8"]


def test_bench_as_json():
    out, _ = topsail("bench", "models:first", "--example", "[1]", "--seconds", "0.005", "--max", "4", "--json")
    points = json.loads(out)
    assert [p["size"] for p in points] == [1, 2, 4]
    for p in points:
        assert p["p99_micros"] >= p["p50_micros"] > 0
        assert p["per_second"] == pytest.approx(p["size"] / p["p50_micros"] * 1e6, rel=0.05)


def test_bench_of_a_model_that_fails():
    _, err = topsail("bench", "models:Many", "--example", "[100]", code=1)
    assert "topsail: a batch of 1 failed: ValueError: 100 is too much" in err


# Pipelines.


def test_check_of_a_pipeline():
    out, _ = topsail("check", "pipelines:MADE", "--example", "[1.5]", "--example", "[2]")
    lines = [line.split() for line in out.splitlines()]
    assert [line[:2] for line in lines[1:]] == [
        ["load", "Scale"],
        ["load", "Shift"],
        ["example", "0"],
        ["example", "1"],
        ["as", "a"],
        ["Scale", "3"],
        ["Shift", "3"],
        ["all", "is"],
    ]
    assert lines[3][-2:] == ["float64", "6.0"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["pipelines:MADE"],
            "there is nothing to try: give --example '[1.0, 2.0]', or the first stage a warmup method",
        ),
        (["pipelines:BROKEN", "--example", "[1]"], "pipelines:BROKEN failed: OSError: the weights are not there"),
        (["pipelines:GRAPH", "--example", "[2]"], "example 0: stage Odd: ValueError: 2 is bad"),
    ],
)
def test_check_of_a_pipeline_says_what_is_wrong(arguments, says):
    _, err = topsail("check", *arguments, code=1)
    assert err.splitlines()[-1].startswith("topsail: " + says)


def test_check_of_what_a_pipeline_drops():
    out, _ = topsail("check", "pipelines:GRAPH", "--example", "[1]")
    assert "dropped: stage Odd: 1 is dropped" in out


def test_bench_of_a_pipeline():
    arguments = ["bench", "pipelines:MADE", "--example", "[1]", "--seconds", "0.005", "--max", "16"]
    out, _ = topsail(*arguments)
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["stage", "batch", "p50", "ms", "p99", "ms", "inputs/s"]
    assert [line[:2] for line in lines[1:]] == [["Scale", "1"]] + [["Shift", n] for n in ("1", "2", "4", "8")]
    points = json.loads(topsail(*arguments, "--json")[0])
    assert [(p["stage"], p["size"]) for p in points] == [("Scale", 1), *(("Shift", n) for n in (1, 2, 4, 8))]


def test_bench_of_a_pipeline_that_fails():
    _, err = topsail("bench", "pipelines:GRAPH", "--example", "[2]", code=1)
    assert err.splitlines()[-1] == "topsail: an example failed: stage Odd: ValueError: 2 is bad"


def test_a_pipeline_that_nobody_describes():
    _, err = topsail("pipeline", code=1)
    assert err.startswith(
        "topsail: TOPSAIL_STAGES is not set: Topsail sets it for a model that has stages; else name a"
    )
    _, err = topsail("pipeline", "models:first", code=1)
    assert err == "topsail: models:first is no topsail.Pipeline: serve it with python -m topsail models:first\n"
    _, err = topsail("pipeline", "pipelines:MADE", code=1)
    assert err.startswith("topsail: TOPSAIL_SIDECAR is not set")


def test_a_pipeline_is_no_model(tmp_path):
    with Container(tmp_path, "-m", "topsail", "pipelines:MADE") as container:
        assert container.ends() == 1
        assert container.said().splitlines()[-1] == (
            "topsail: pipelines:MADE is a pipeline: serve it with python -m topsail pipeline pipelines:MADE"
        )
