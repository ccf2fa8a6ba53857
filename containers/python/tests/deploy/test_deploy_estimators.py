"""scikit-learn's estimators, of each kind one: deployed, loaded in another process, and compared there with what they
answer here. `make test-runtimes` does so with all that there are."""

import numpy as np
import pytest
from sklearn.cluster import Birch
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC

import topsail

X = np.random.default_rng(1).random((40, 3))
Y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.7)
BOTH = np.stack([Y, 1 - (Y > 0)], axis=1)


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=2).fit(X, Y),
        GridSearchCV(SGDClassifier(random_state=1), {"alpha": [1e-4, 1e-3]}, cv=2).fit(X, Y),
        StackingClassifier([("a", LogisticRegression()), ("b", SVC())], cv=2).fit(X, Y),
        HistGradientBoostingRegressor(max_iter=2).fit(X, Y),
        GaussianProcessRegressor().fit(X, Y),
        MLPRegressor(hidden_layer_sizes=(4,), max_iter=500, random_state=1, tol=1).fit(X, Y),
        PLSRegression(2).fit(X, BOTH),
        IsolationForest(n_estimators=5, random_state=1).fit(X),
        Birch(n_clusters=2).fit(X),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_kind_of_model(client, model):
    deployed = topsail.deploy_sklearn("m", model, X[0], check=X, client=client, progress=False)
    assert deployed.predict(X[3]).output == pytest.approx(model.predict(X[3:4])[0])


def test_probabilities_of_several_outputs(client):
    """A matrix for each output, in scikit-learn."""
    model = RandomForestClassifier(n_estimators=3, random_state=1).fit(X, BOTH)
    deployed = topsail.deploy_sklearn("m", model, X[0], check=X, method="predict_proba", client=client, progress=False)
    first, second = deployed.predict(X[3]).output
    assert len(first) == 3 and len(second) == 2 and sum(first) == pytest.approx(1)


def test_texts(client):
    model = make_pipeline(TfidfVectorizer(stop_words=["the", "a"]), LogisticRegression())
    model.fit(["the cat", "a dog", "a cat"], ["c", "d", "c"])
    assert topsail.deploy_sklearn("m", model, "a cat", check=["dog"], client=client, progress=False).version == "1"


def test_truths(client):
    """As columns of pandas.get_dummies are."""
    model = LogisticRegression().fit(X > 0.5, Y)
    deployed = topsail.deploy_sklearn("m", model, (X > 0.5)[0], check=X > 0.5, client=client, progress=False)
    assert deployed.predict((X > 0.5)[3]).output == model.predict((X > 0.5)[3:4])[0]


def test_whole_numbers_that_a_product_makes_large(client):
    """Which 32 bits do not hold."""
    big = np.array([[1, 2], [50_000, 3], [100_000, 70_000]])
    model = make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(big, [1.0, 2.0, 3.0])
    topsail.deploy_sklearn("m", model, big[0], check=big, client=client, progress=False)
