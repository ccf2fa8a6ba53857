"""Clipper's own deployer of PySpark, its code unchanged, and Spark itself. A Topsail in local mode is named by its
addresses, as for tests/clipper; without them it is a fake, which loads the model as a container would."""

import os
import sys
import time

import pytest
import requests
from clipper_admin import ClipperConnection
from clipper_admin.deployers.pyspark import deploy_pyspark_model
from pyspark.ml.linalg import Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession

from topsail.clipper import TopsailContainerManager


@pytest.fixture
def addresses(management):
    if "TOPSAIL_ADMIN" in os.environ:
        return os.environ["TOPSAIL_QUERY"], os.environ["TOPSAIL_ADMIN"]
    return management.addr, management.addr


def test_a_model_with_a_function(addresses, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = [(Vectors.dense([a, b]), 2.0 * a + 3.0 * b) for a in range(4) for b in range(4)]
    model = LinearRegression().fit(spark.createDataFrame(rows, ["features", "label"]))

    def predict(spark, model, inputs):
        assert spark.range(3).count() == 3
        return [f"{model.predict(Vectors.dense(x)):.1f}" for x in inputs]

    query, admin = addresses
    clipper = ClipperConnection(TopsailContainerManager(query_addr=query, admin_addr=admin))
    clipper.connect()
    deploy_pyspark_model(clipper, "weights", 1, "doubles", predict, model, spark.sparkContext)
    spark.stop()  # the fake starts one in this process
    clipper.register_application("weights", "doubles", "?", 5_000_000)
    clipper.link_model_to_app("weights", "weights")
    deadline = time.monotonic() + 180
    while True:
        answer = requests.post(f"http://{query}/weights/predict", json={"input": [2.0, 1.0]}, timeout=60).json()
        if not answer["default"]:
            break
        assert time.monotonic() < deadline, answer
        time.sleep(0.5)
    assert answer["output"] == 7.0
