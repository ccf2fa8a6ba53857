"""Deploying what runs in programs of its own, R and Spark: what is packed, and what is tried here. The programs
themselves are run by `make test-deployers`."""

import sys

import pytest
from sidecar import HERE

import topsail
from topsail import bundle
from topsail.deploy import requirements, trial
from topsail.deploy.failure import DeployFailed

FAKES = HERE / "fakes"


@pytest.fixture
def packed(management):
    return lambda: bundle.read([*management.artifacts.values()][-1])


@pytest.fixture
def deploy_r(client):
    def deploy_r(path, **terms):
        said = []
        topsail.deploy_r("sums", path, [1.0, 2.5], client=client, progress=said.append, replicas=0, **terms)
        return said

    return deploy_r


def test_r_that_is_here(deploy_r, packed, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(FAKES / "bin"), prepend=":")
    (tmp_path / "model.R").write_text("any")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rates.csv").write_text("1")
    assert any("its example gives 3.5" in line for line in deploy_r(tmp_path, seconds=90.5))
    assert sorted(packed().files) == ["data/rates.csv", "model.R"]
    said = packed().manifest
    assert (said.runtime, said.entry, said.options, said.requirements) == ("r", "model.R", {"seconds": "90.5"}, ())
    assert (said.input_type, said.input_length) == ("doubles", 0)
    (tmp_path / "model.R").write_text("no-predict")
    with pytest.raises(DeployFailed, match="it defines no function predict"):
        deploy_r(tmp_path)


def test_r_that_is_not_here(deploy_r, packed, monkeypatch, tmp_path):
    """It is tried where it runs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sums.R").write_text("any")
    assert not any("tried" in line for line in deploy_r(tmp_path / "sums.R"))
    assert packed().manifest.entry == "sums.R"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "has no model.R: make it with topsail_save in R, or name a file"),
        ("sums.py", "sums.py' is not a file .R"),
        ("none.R", "cannot be read: No such file"),
    ],
)
def test_r_that_cannot_be_deployed(deploy_r, tmp_path, name, says):
    with pytest.raises(DeployFailed, match=says):
        deploy_r(tmp_path / name)


@pytest.fixture
def spark(monkeypatch):
    monkeypatch.syspath_prepend(str(FAKES))
    monkeypatch.setattr(requirements, "_pin", lambda name, cuda: f"{name}==4.0")
    monkeypatch.setattr(requirements, "is_installed", lambda name: True)
    monkeypatch.setattr(trial, "can_be_tried", lambda bundle: False)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        del sys.modules[name]


def weigh(spark, model, inputs):
    return [sum(x) * model.factor for x in inputs]


def test_a_model_of_spark(client, packed, spark):
    from pyspark.ml import PipelineModel

    def deploy(*func, **terms):
        topsail.deploy_pyspark("w", PipelineModel(4), [1.0], *func, client=client, progress=False, replicas=0, **terms)
        return packed().manifest

    said = deploy(weigh, master="local[2]")
    options = {"class": "pyspark.ml.PipelineModel", "master": "local[2]", "model": "model"}
    assert (said.runtime, said.entry, said.options, said.input_length) == ("pyspark", "function.pkl", options, 0)
    assert "pyspark==4.0" in said.requirements
    assert packed().files["model/metadata/part-0"] == b"4"
    assert "test_deploy_alone.py" in packed().files  # where the function is
    said = deploy(features="x", output="y")
    assert (said.entry, said.options, said.input_length) == ("model", {"features": "x", "output": "y"}, 1)
    with pytest.raises(DeployFailed, match="features and output are for a PipelineModel without func"):
        deploy(weigh, output="y")
