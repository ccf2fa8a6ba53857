"""Pipelines of scikit-learn that take a DataFrame: queries name its columns."""

import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import topsail
from topsail import bundle
from topsail.container.signature import Signature, Tensor
from topsail.deploy.failure import DeployFailed
from topsail.deploy.named import by_name

FRAME = pd.DataFrame(
    {
        "age": pd.Series([20, 30, 40, 50], dtype="int32"),
        "income": pd.Series([1.0, 2.0, 3.0, 4.0], dtype="float32"),
        "city": ["Rome", "Oslo", "Rome", "Oslo"],
        "member": [True, False, True, True],
    }
)
LABELS = ["no", "no", "yes", "yes"]
INPUTS = (
    Tensor("age", "int32"),
    Tensor("income", "float32"),
    Tensor("city", "string"),
    Tensor("member", "bool"),
)
ROW = {"age": 50, "income": 4.0, "city": "Oslo", "member": True}


@pytest.fixture(scope="module")
def pipeline():
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]),
        (OneHotEncoder(handle_unknown="ignore"), ["city"]),
        remainder="passthrough",
    )
    return make_pipeline(columns, LogisticRegression()).fit(FRAME, LABELS)


@pytest.fixture
def deploy(client):
    def deploy(model, given, **terms):
        return topsail.deploy_sklearn("churn", model, given, client=client, progress=False, **terms)

    return deploy


def test_columns_are_inputs(deploy, management, pipeline):
    deployed = deploy(pipeline, FRAME.iloc[:1])
    [data] = management.artifacts.values()
    manifest = bundle.read(data).manifest
    assert manifest.signature == Signature(INPUTS, (Tensor("output", "string"),))
    assert manifest.example == {"age": 20, "income": 1.0, "city": "Rome", "member": True}
    assert "pandas" in [r.partition("==")[0] for r in manifest.requirements]
    assert deployed.predict(ROW).output == deployed.predict(FRAME.iloc[3:]).output == "yes"
    assert deployed.predict(FRAME.iloc[0]).outputs == {"output": "no"}


def test_a_row_and_a_dict_are_examples_too(deploy, management, pipeline):
    deploy(pipeline, FRAME.iloc[0], app=False)
    deployed = deploy(pipeline, dict(zip(FRAME, FRAME.iloc[0], strict=True)))
    assert deployed.version == "1"
    [data] = management.artifacts.values()
    assert bundle.read(data).manifest.signature.inputs == INPUTS


def test_probabilities(deploy, management, pipeline):
    deployed = deploy(pipeline, FRAME.iloc[:1], method="predict_proba")
    assert deployed.predict(ROW).output == pytest.approx(pipeline.predict_proba(FRAME)[3].tolist())
    assert management.apps["churn"]["signature"]["outputs"] == [{"name": "output", "type": "float64", "shape": [2]}]


def test_the_model_gets_the_types_of_its_columns(deploy, management):
    class Types:
        def predict(self, frame):
            return [" ".join(map(str, frame.dtypes))] * len(frame)

    deployed = deploy(Types(), FRAME.iloc[:1])
    assert deployed.predict(ROW).output == " ".join(map(str, FRAME.dtypes))


def test_a_series_is_a_vector(deploy, management):
    class Sum:
        def predict(self, rows):
            return [float(sum(row)) for row in rows]

    assert deploy(Sum(), pd.Series({"a": 1.5, "b": 2.0})).predict([1.5, 2.0]).output == 3.5


def test_rows_without_names_are_as_they_are():
    row = pd.Series([1.5, 2.0])
    assert by_name(row) is row


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (FRAME, r"the example has 4 rows: give one, as X.iloc\[:1\]"),
        (FRAME.iloc[:1].rename(columns={"age": 0}), "must have names that are texts"),
        (FRAME.iloc[:1].assign(at=pd.Timestamp(0)), "the column 'at' is of type datetime"),
        (FRAME.iloc[:1].assign(city=None), "the column 'city' is json: an example has one number"),
        ({"age": [1, 2]}, r"the column 'age' is int64\[2\]: an example has one number"),
        (FRAME.iloc[:1].drop(columns="age"), "the model fails on the example: ValueError: columns are missing"),
    ],
)
def test_examples_that_are_refused(deploy, management, pipeline, given, says):
    with pytest.raises(DeployFailed, match=says):
        deploy(pipeline, given)
    assert management.did() == []
