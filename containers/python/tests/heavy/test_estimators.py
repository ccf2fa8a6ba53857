"""Every estimator of scikit-learn that predicts: deployed, loaded in another process, and compared there with what it
answers here."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import all_estimators

import topsail

RNG = np.random.default_rng(1)
X = RNG.random((40, 4))
Y = (X[:, 0] > 0.5).astype(int)
BOTH = np.stack([Y, (X[:, 1] > 0.5).astype(int)], axis=1)
TABLES = [(X, Y), (X, X[:, 0]), (X, BOTH), (X[:, :1], X[:, 0]), ((X * 3).astype(int), Y)]

# What some need beside what their signatures demand.
MORE = {
    "ClassifierChain": {"estimator": LogisticRegression()},
    "LocalOutlierFactor": {"novelty": True},
    "RegressorChain": {"estimator": Ridge()},
    "SelfTrainingClassifier": {"estimator": LogisticRegression()},
}

PREDICTORS = {name: kind for name, kind in all_estimators() if hasattr(kind, "predict")}


def made(kind):
    """One with what it has to be given."""
    classifies = "lassif" in kind.__name__
    inner = LogisticRegression() if classifies else Ridge()
    given = {"estimator": inner, "estimators": [("a", inner), ("b", inner)], "base_estimator": inner}
    given |= {"param_grid": {}, "param_distributions": {}, "steps": [("a", inner)]}
    parameters = inspect.signature(kind).parameters.values()
    needed = {p.name: given[p.name] for p in parameters if p.default is p.empty and p.name in given}
    return kind(**needed | MORE.get(kind.__name__, {}))


def fitted(kind):
    """With a table that it takes; None where there is none."""
    for x, y in TABLES:
        try:
            model = made(kind).fit(x, y)
            model.predict(x)
        except Exception:
            continue
        return model, x
    return None


@pytest.mark.parametrize("name", sorted(PREDICTORS))
def test_an_estimator(client, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fitted(PREDICTORS[name])
    assert found, "it cannot be fitted on any of the tables"
    model, x = found
    topsail.deploy_sklearn("m", model, x[0], check=x, client=client, progress=False)
