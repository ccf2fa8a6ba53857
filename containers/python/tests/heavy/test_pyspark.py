"""Spark itself, which takes Java: a pipeline and functions, deployed and run on this machine."""

import os
import signal
import sys

import pyspark
import pytest
from bundles import unpacked
from pyspark.ml import Pipeline
from pyspark.ml.linalg import Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.mllib.regression import LabeledPoint, LinearRegressionWithSGD
from pyspark.sql import SparkSession

import topsail
from topsail import bundle, testing
from topsail.deploy.failure import DeployFailed
from topsail.runtime.folder import Folder
from topsail.runtime.load import load


def outputs(model, inputs):
    answers = testing.run(model, inputs, "doubles")
    assert [a.error for a in answers if a.error] == []
    return [a.output for a in answers]


@pytest.fixture
def spark(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


def weighing(spark):
    """A pipeline that has learned y = 2a + 3b."""
    rows = [(Vectors.dense([a, b]), 2.0 * a + 3.0 * b) for a in range(4) for b in range(4)]
    return Pipeline(stages=[LinearRegression()]).fit(spark.createDataFrame(rows, ["features", "label"]))


@pytest.fixture
def deploy(client, management, tmp_path):
    """Deploys without replicas, and returns the manifest, and a function that asks the model of the bundle. Which takes
    a Spark of its own, so the test's has to be stopped before."""

    def deploy(model, *func, **terms):
        topsail.deploy_pyspark("y", model, [1.0, 2.0], *func, client=client, progress=False, replicas=0, **terms)
        packed = bundle.read([*management.artifacts.values()][-1])
        packed.unpack(tmp_path / "deployed")
        return packed.manifest, lambda *inputs: outputs(load(Folder(tmp_path / "deployed")), list(inputs))

    return deploy


def test_deploying_a_pipeline(deploy, spark):
    said, ask = deploy(weighing(spark))
    spark.stop()
    assert ask([2.0, 1.0], [0.0, 1.0]) == pytest.approx([7.0, 3.0])
    assert (said.runtime, said.entry, said.options) == ("pyspark", "model", {})
    assert f"pyspark=={pyspark.__version__}" in said.requirements
    assert (said.input_type, said.input_length) == ("doubles", 2)


def test_deploying_a_function_with_a_model(deploy, spark):
    def rounded(spark, model, inputs):
        frame = spark.createDataFrame([(i, Vectors.dense(x)) for i, x in enumerate(inputs)], ["i", "features"])
        rows = model.transform(frame).orderBy("i").collect()
        return [f"{row.prediction:.0f} of {spark.sparkContext.master}" for row in rows]

    said, ask = deploy(weighing(spark).stages[0], rounded, master="local[2]")
    spark.stop()
    assert ask([2.0, 1.0]) == ["7 of local[2]"]
    assert said.options == {
        "class": "pyspark.ml.regression.LinearRegressionModel",
        "master": "local[2]",
        "model": "model",
    }


def test_deploying_a_model_of_mllib(deploy, spark):
    points = spark.sparkContext.parallelize([LabeledPoint(2.0 * a, [float(a)]) for a in range(4)])
    model = LinearRegressionWithSGD.train(points, iterations=50, step=0.3)
    said, ask = deploy(model, lambda spark, model, inputs: [model.predict(x[:1]) for x in inputs])
    spark.stop()
    assert ask([3.0, 0.0]) == pytest.approx([6.0], abs=0.01)
    assert said.options["class"] == "pyspark.mllib.regression.LinearRegressionModel"


def test_what_cannot_be_deployed(deploy, spark):
    with pytest.raises(DeployFailed, match="LinearRegressionModel: give func\\(spark, model, inputs\\)"):
        deploy(weighing(spark).stages[0])
    with pytest.raises(DeployFailed, match="features and output are for a PipelineModel without func"):
        deploy(weighing(spark), lambda spark, model, inputs: inputs, output="prediction")
    with pytest.raises(DeployFailed, match="fails on the example: .*no attribute 'missing'"):
        deploy(weighing(spark), lambda spark, model, inputs: spark.missing(model))


def test_java_that_ends(deploy, spark):
    """The container ends with it, to be started anew, and does not go on without."""

    def ending(spark, model, inputs):
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        return [spark.range(1).count()]

    with pytest.raises(DeployFailed, match="Spark's Java has ended with status -9"):
        deploy(weighing(spark), ending)


def test_a_pipeline(tmp_path, spark):
    """It is saved, packed, and answers in the order of its inputs."""
    weighing(spark).save(str(tmp_path / "saved"))
    saved = {
        f"model/{p.relative_to(tmp_path / 'saved').as_posix()}": p.read_bytes()
        for p in (tmp_path / "saved").rglob("*")
        if p.is_file()
    }
    model = load(Folder(unpacked(tmp_path, "pyspark", "model", saved, options={"master": "local[2]"})))
    assert outputs(model, [[float(i), 1.0] for i in range(20)]) == pytest.approx([2.0 * i + 3.0 for i in range(20)])


def test_a_function(tmp_path, monkeypatch):
    """Spark's workers are of the Python that the container has."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    text = b"""
import sys
def predict(spark, inputs):
    assert spark.sparkContext.range(1).map(lambda _: sys.prefix).collect() == [sys.prefix]
    return [spark.range(int(x[0])).count() for x in inputs]
"""
    folder = unpacked(tmp_path, "pyspark", "counting:predict", {"counting.py": text})
    monkeypatch.syspath_prepend(str(folder))
    assert outputs(load(Folder(folder)), [[3.0], [5.0]]) == [3, 5]
