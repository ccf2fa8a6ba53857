"""Spark itself, which takes Java: a pipeline and a function, run on this machine."""

import pytest
from bundles import unpacked
from pyspark.ml import Pipeline
from pyspark.ml.linalg import Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession

from topsail import testing
from topsail.runtime.folder import Folder
from topsail.runtime.load import load


def outputs(model, inputs):
    answers = testing.run(model, inputs, "doubles")
    assert [a.error for a in answers if a.error] == []
    return [a.output for a in answers]


def test_a_pipeline(tmp_path):
    """It learns y = 2a + 3b, is saved, packed, and answers in the order of its inputs."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = [(Vectors.dense([a, b]), 2.0 * a + 3.0 * b) for a in range(4) for b in range(4)]
    fitted = Pipeline(stages=[LinearRegression()]).fit(spark.createDataFrame(rows, ["features", "label"]))
    fitted.save(str(tmp_path / "saved"))
    spark.stop()
    saved = {
        f"model/{p.relative_to(tmp_path / 'saved').as_posix()}": p.read_bytes()
        for p in (tmp_path / "saved").rglob("*")
        if p.is_file()
    }
    model = load(Folder(unpacked(tmp_path, "pyspark", "model", saved, options={"master": "local[2]"})))
    assert outputs(model, [[float(i), 1.0] for i in range(20)]) == pytest.approx([2.0 * i + 3.0 for i in range(20)])


def test_a_function(tmp_path, monkeypatch):
    text = b"def predict(spark, inputs): return [spark.range(int(x[0])).count() for x in inputs]"
    folder = unpacked(tmp_path, "pyspark", "counting:predict", {"counting.py": text})
    monkeypatch.syspath_prepend(str(folder))
    assert outputs(load(Folder(folder)), [[3.0], [5.0]]) == [3, 5]
