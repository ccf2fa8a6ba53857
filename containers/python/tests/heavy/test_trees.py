"""XGBoost and LightGBM: real models, deployed and run from their own formats."""

import lightgbm
import numpy as np
import pytest
import xgboost
from bundles import unpacked
from sklearn.datasets import load_iris

import topsail
from topsail import bundle
from topsail.deploy.failure import DeployFailed
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
TWO = Y < 2


@pytest.fixture(scope="module")
def boosted():
    return xgboost.XGBClassifier(n_estimators=5).fit(X, Y)


@pytest.fixture(scope="module")
def light():
    return lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(X, NAMES[Y])


def deployed(client, deploy, model, **terms):
    return deploy("iris", model, X[0], client=client, progress=False, **terms)


def answers(deployment, rows=X[::50]):
    return [deployment.predict(x).output for x in rows]


def test_a_classifier_of_xgboost(client, management, boosted):
    assert answers(deployed(client, topsail.deploy_xgboost, boosted)) == boosted.predict(X[::50]).tolist()
    [data] = management.artifacts.values()
    assert bundle.read(data).manifest.entry == "model.ubj"


@pytest.mark.parametrize("output", ["value", "margin"])
def test_a_booster_of_xgboost(client, boosted, output):
    booster = boosted.get_booster()
    expected = booster.predict(xgboost.DMatrix(X[::50]), output_margin=output == "margin")
    got = answers(deployed(client, topsail.deploy_xgboost, booster, output=output))
    assert np.allclose(got, expected, rtol=1e-5)


def test_two_classes_of_xgboost(client):
    model = xgboost.XGBClassifier(n_estimators=5).fit(X[TWO], Y[TWO])
    assert answers(deployed(client, topsail.deploy_xgboost, model), X[[0, 70]]) == [0, 1]


def test_many_labels_of_xgboost(client):
    """A label for each column, as XGBoost itself gives them."""
    many = np.stack([Y == 0, X[:, 0] > 6, X[:, 3] > 1], axis=1).astype(int)
    model = xgboost.XGBClassifier(n_estimators=5).fit(X, many)
    assert answers(deployed(client, topsail.deploy_xgboost, model)) == model.predict(X[::50]).tolist()
    said = answers(deployed(client, topsail.deploy_xgboost, model.get_booster(), output="label"))
    assert said == model.predict(X[::50]).tolist()
    scores = answers(deployed(client, topsail.deploy_xgboost, model, output="value"))
    assert np.allclose(scores, model.predict_proba(X[::50]), rtol=1e-5)


def test_labels_of_what_has_none_in_xgboost(client):
    model = xgboost.XGBRegressor(n_estimators=5).fit(X[:, :2], X[:, 2:])
    with pytest.raises(DeployFailed, match="several outputs, and its objective is reg:squarederror.*for classifiers"):
        topsail.deploy_xgboost("iris", model, X[0, :2], client=client, progress=False, output="label")
    got = topsail.deploy_xgboost("iris", model, X[0, :2], client=client, progress=False).predict(X[0, :2]).output
    assert np.allclose(got, model.predict(X[:1, :2])[0], rtol=1e-5)


def test_a_regression_of_xgboost(client):
    model = xgboost.XGBRegressor(n_estimators=5).fit(X, Y)
    assert np.allclose(answers(deployed(client, topsail.deploy_xgboost, model)), model.predict(X[::50]), rtol=1e-5)


def stopped(booster):
    """A model whose training was stopped some trees after its best one."""
    model = xgboost.XGBClassifier(booster=booster, n_estimators=60, learning_rate=1.0, early_stopping_rounds=5)
    return model.fit(X[::2], Y[::2], eval_set=[(X[1::2], Y[1::2])], verbose=False)


def test_a_model_of_xgboost_that_was_stopped_early(client):
    model = stopped("gbtree")
    best = model.best_iteration
    assert best + 1 < model.get_booster().num_boosted_rounds()
    got = answers(deployed(client, topsail.deploy_xgboost, model, output="value"))
    assert np.allclose(got, model.predict_proba(X[::50]), rtol=1e-5)


def test_a_linear_model_of_xgboost_has_no_trees_to_leave_out(client):
    model = stopped("gblinear")
    assert answers(deployed(client, topsail.deploy_xgboost, model)) == model.predict(X[::50]).tolist()


def test_what_stands_for_a_missing_number_in_xgboost(client):
    gaps = X.copy()
    gaps[::3, 2:] = -999
    model = xgboost.XGBClassifier(n_estimators=5, missing=-999).fit(gaps, Y)
    got = answers(deployed(client, topsail.deploy_xgboost, model, output="value"), gaps[::25])
    assert np.allclose(got, model.predict_proba(gaps[::25]), rtol=1e-5)


def test_labels_of_an_objective_that_gives_them_itself(client):
    booster = xgboost.train({"objective": "multi:softmax", "num_class": 3}, xgboost.DMatrix(X, label=Y), 3)
    assert answers(deployed(client, topsail.deploy_xgboost, booster, output="label")) == [0, 1, 2]
    assert answers(deployed(client, topsail.deploy_xgboost, booster)) == [0.0, 1.0, 2.0]


def test_a_classifier_of_lightgbm(client, light):
    assert answers(deployed(client, topsail.deploy_lightgbm, light)) == light.predict(X[::50]).tolist()


@pytest.mark.parametrize("output", ["value", "margin"])
def test_a_booster_of_lightgbm(client, light, output):
    expected = light.booster_.predict(X[::50], raw_score=output == "margin")
    got = answers(deployed(client, topsail.deploy_lightgbm, light.booster_, output=output))
    assert np.allclose(got, expected)


def test_two_classes_of_lightgbm(client):
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(X[TWO], NAMES[Y[TWO]])
    assert answers(deployed(client, topsail.deploy_lightgbm, model), X[[0, 70]]) == ["setosa", "versicolor"]


def scores(deployment, rows):
    """The confidence and the probabilities of the classes, of each row."""
    found = [deployment.predict(x) for x in rows]
    return [a.confidence for a in found], [a.qualifiers.get("scores") for a in found]


@pytest.mark.parametrize("rows", [slice(None), TWO], ids=["three classes", "two"])
@pytest.mark.parametrize("output", ["label", "value"])
@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_probabilities_beside_answers(client, kind, output, rows):
    """Answers stay the same, and have none by default."""
    x, y = X[rows], Y[rows]
    make = (
        xgboost.XGBClassifier(n_estimators=5)
        if kind == "xgboost"
        else lightgbm.LGBMClassifier(n_estimators=5, verbose=-1)
    )
    model = make.fit(x, y if kind == "xgboost" else NAMES[y])
    deploy, asked = getattr(topsail, f"deploy_{kind}"), x[::25]
    served = deployed(client, deploy, model, output=output, scores=True)
    expected = model.predict_proba(asked)
    confidences, found = scores(served, asked)
    assert np.allclose(confidences, expected.max(axis=1), rtol=1e-5)
    named = output == "label" and kind == "lightgbm"
    assert list(found[0]) == [NAMES[k] if named else str(k) for k in range(expected.shape[1])]
    assert np.allclose([list(row.values()) for row in found], expected, rtol=1e-4, atol=1e-7)
    for without in ({}, {"scores": False}):
        plain = deployed(client, deploy, model, output=output, **without)
        assert answers(plain, asked) == answers(served, asked)
        assert scores(plain, asked) == ([None] * len(asked),) * 2


@pytest.mark.parametrize("output", ["margin", None])
def test_what_says_no_probabilities(client, boosted, output):
    model = boosted if output else xgboost.XGBRegressor(n_estimators=5).fit(X, Y)
    served = deployed(client, topsail.deploy_xgboost, model, output=output, scores=True)
    assert scores(served, X[:1]) == ([None], [None])
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(X, Y)
    served = deployed(client, topsail.deploy_lightgbm, model, output=output, scores=True)
    assert scores(served, X[:1]) == ([None], [None])


@pytest.mark.parametrize("runtime", ["xgboost", "lightgbm"])
def test_what_is_no_model(tmp_path, client, runtime):
    with pytest.raises(PermanentFailure, match="cannot load model.bin"):
        load(Folder(unpacked(tmp_path, runtime, "model.bin", {"model.bin": b"junk"})))
    with pytest.raises(PermanentFailure, match="option output = 'best' is unknown: use value, margin, label"):
        load(Folder(unpacked(tmp_path, runtime, "model.bin", {"model.bin": b""}, options={"output": "best"})))
    with pytest.raises(PermanentFailure, match="is no list in JSON"):
        load(Folder(unpacked(tmp_path, runtime, "model.bin", {"model.bin": b""}, options={"classes": "a, b"})))
    if runtime == "xgboost":
        with pytest.raises(PermanentFailure, match="the option missing = 'none' is no number"):
            load(Folder(unpacked(tmp_path, runtime, "model.bin", {"model.bin": b""}, options={"missing": "none"})))
    with pytest.raises(DeployFailed, match="the model is a int: give a Booster"):
        getattr(topsail, f"deploy_{runtime}")("iris", 7, X[0], client=client)


# Columns of pandas' type category.


def stores():
    import pandas as pd

    frame = pd.DataFrame({"store": pd.Categorical([10, 20, 30] * 20), "size": np.arange(60.0)})
    frame["city"] = pd.Categorical(["Oslo", "Rome", "Bern"] * 20)
    return frame, np.array([-5.0, 0.0, 5.0] * 20) + frame["size"].to_numpy() / 100


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_columns_of_categories(client, kind):
    frame, target = stores()
    models = {
        "xgboost": lambda: xgboost.XGBRegressor(n_estimators=5, enable_categorical=True),
        "lightgbm": lambda: lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, min_child_samples=2),
    }
    model = models[kind]().fit(frame, target)
    numbers = models[kind]().fit(frame[["store", "size"]], target)
    deploy = {"xgboost": topsail.deploy_xgboost, "lightgbm": topsail.deploy_lightgbm}[kind]
    booster = numbers.get_booster() if kind == "xgboost" else numbers.booster_
    for wrong in (numbers, booster):
        with pytest.raises(
            DeployFailed, match="trained on columns of the type category .*: deploy it by deploy_sklearn"
        ):
            deploy("m", wrong, [20.0, 1.0], client=client, progress=False)
    with pytest.raises(DeployFailed, match=r"trained on columns of the type category .*: give a DataFrame of one row"):
        topsail.deploy_sklearn("m", numbers, frame[["store", "size"]].iloc[0], client=client, progress=False)
    deployed = topsail.deploy_sklearn("m", model, frame.iloc[:1], check=frame, client=client, progress=False)
    asked = {"store": 20, "size": 1.0, "city": "Rome"}
    assert deployed.predict(asked).output == pytest.approx(model.predict(frame.iloc[1:2])[0], abs=1e-4)


def test_categories_that_are_numbers_already(client):
    """Of an array, whose numbers are the places of the categories."""
    x = np.array([[k % 3, k] for k in range(60)], dtype="float64")
    model = xgboost.XGBRegressor(n_estimators=5, enable_categorical=True, feature_types=["c", "float"]).fit(x, x[:, 0])
    deployed = topsail.deploy_xgboost("m", model, x[0], check=x, client=client, progress=False)
    assert deployed.predict(x[1]).output == pytest.approx(model.predict(x[1:2])[0], abs=1e-4)


def test_an_objective_of_ones_own(client):
    """LightGBM gives its scores as they are."""

    def logistic(y, score):
        p = 1 / (1 + np.exp(-score))
        return p - y, p * (1 - p)

    model = lightgbm.LGBMClassifier(objective=logistic, n_estimators=3, learning_rate=0.05, verbose=-1)
    model.fit(X[:100], Y[:100])
    deployed = topsail.deploy_lightgbm("m", model, X[0], check=X[:100], client=client, progress=False)
    assert deployed.predict(X[0]).output == pytest.approx(model.predict(X[:1])[0], abs=1e-6)
    with pytest.raises(DeployFailed, match="objective is a function, so that its scores say no label"):
        topsail.deploy_lightgbm("m", model, X[0], output="label", client=client, progress=False)
