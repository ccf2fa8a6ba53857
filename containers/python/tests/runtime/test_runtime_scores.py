"""Confidence and qualifiers beside answers: real estimators, whose answers stay what they were."""

import math

import numpy as np
import pytest
from bundles import pickled
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from topsail import Output, testing
from topsail.container.encoding import encode
from topsail.output import Scored
from topsail.protocol.constants import DType
from topsail.protocol.reply import OneQualifier
from topsail.runtime.estimator import answering
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.output_scores import OutputScores
from topsail.runtime.scores import Classes

IRIS = load_iris(return_X_y=True)
NAMED = IRIS[0], np.array(["setosa", "100 %", "virginica"])[IRIS[1]]
TWO = load_breast_cancer(return_X_y=True)

CLASSIFIERS = {
    "forest": RandomForestClassifier(9, random_state=1),
    "forest with ties": RandomForestClassifier(2, random_state=1),
    "extra trees": ExtraTreesClassifier(9, random_state=1),
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=1),
    "boosting with histograms": HistGradientBoostingClassifier(max_iter=5, random_state=1),
    "adaboost": AdaBoostClassifier(n_estimators=5, random_state=1),
    "bagging": BaggingClassifier(n_estimators=5, random_state=1),
    "neighbours": KNeighborsClassifier(4),
    "weighted neighbours": KNeighborsClassifier(4, weights="distance"),
    "calibrated": CalibratedClassifierCV(LinearSVC(random_state=1), cv=2),
    "soft votes": VotingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier(max_depth=2))], voting="soft"),
    "tree": DecisionTreeClassifier(max_depth=1, random_state=1),
    "logistic": LogisticRegression(max_iter=50),
    "logistic, one against the rest": LogisticRegression(C=1e6, solver="newton-cg", max_iter=50),
    "bayes": GaussianNB(),
    "discriminant": LinearDiscriminantAnalysis(),
    "network": MLPClassifier(max_iter=5, random_state=1),
    "descent": SGDClassifier(loss="modified_huber", random_state=1),
    "vectors": SVC(probability=True, random_state=1),
    "margins": SVC(),
    "linear margins": LinearSVC(random_state=1),
    "pipeline": make_pipeline(StandardScaler(), RandomForestClassifier(9, random_state=1)),
    "search": GridSearchCV(RandomForestClassifier(3, random_state=1), {"max_depth": [2]}, cv=2),
}
DEFAULT = {  # of those, the ones whose probabilities cost next to nothing
    "forest",
    "forest with ties",
    "extra trees",
    "adaboost",
    "bagging",
    "calibrated",
    "soft votes",
    "boosting with histograms",
    "neighbours",
    "weighted neighbours",
    "pipeline",
    "search",
}


def values(outputs):
    return [o.value if isinstance(o, (Output, Scored)) else o for o in outputs]


@pytest.mark.parametrize("data", [NAMED, TWO], ids=["three classes", "two"])
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore")
def test_labels_stay_what_predict_says(name, data):
    x, y = data
    model = CLASSIFIERS[name].fit(x[::3], y[::3])
    said = model.predict(x)
    for wanted in (None, True, False):
        found = values(answering(model, "predict", wanted)(x))
        assert found == list(said) and {type(v) for v in found} == {type(v) for v in said}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore")
def test_what_comes_beside_a_label(tmp_path, name):
    x, y = NAMED
    model = CLASSIFIERS[name].fit(x[::3], y[::3])
    [default] = testing.run(load(Folder(pickled(tmp_path / "default", model))), x[:1].tolist(), "doubles")
    assert (default.confidence is not None) == (name in DEFAULT)
    assert ("scores" in default.qualifiers) == (name in DEFAULT)
    asked = load(Folder(pickled(tmp_path / "asked", model, options={"scores": "true"})))
    answers = testing.run(asked, x[::10].tolist(), "doubles")
    if not hasattr(model, "predict_proba"):
        assert [a.confidence for a in answers] == [None] * 15
        best = np.sort(model.decision_function(x[::10]), axis=1)
        assert [a.qualifiers["margin"] for a in answers] == pytest.approx((best[:, -1] - best[:, -2]).tolist())
        return
    p, labels = model.predict_proba(x[::10]), list(model.classes_)
    for row, answer in zip(p.tolist(), answers, strict=True):
        assert answer.qualifiers == {"scores": pytest.approx(dict(zip(labels, row, strict=True)), rel=1e-5)}
        assert answer.confidence == pytest.approx(row[labels.index(answer.output)], rel=1e-12)
    refused = load(Folder(pickled(tmp_path / "refused", model, options={"scores": "false"})))
    [none] = testing.run(refused, x[:1].tolist(), "doubles")
    assert (none.output, none.confidence, none.qualifiers) == (answers[0].output, None, {})


@pytest.mark.parametrize(
    "method", ["predict_proba", "decision_function"], ids=["of probabilities", "of decision functions"]
)
def test_other_methods(tmp_path, method):
    x, y = IRIS
    model = LogisticRegression(max_iter=50).fit(x, y)
    said = {"method": method, "scores": "true"}
    [answer] = testing.run(load(Folder(pickled(tmp_path, model, options=said))), x[:1].tolist(), "doubles")
    row = getattr(model, method)(x[:1])[0]
    assert answer.output == row.tolist()
    assert answer.confidence == (row.max() if method == "predict_proba" else None)
    assert set(answer.qualifiers) == {"scores" if method == "predict_proba" else "margin"}


@pytest.mark.parametrize("leaf", [1, 5])
@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_the_spread_of_forests(kind, scaled, leaf):
    """By the law of total variance, from the values in the leaves of each tree."""
    x, y = IRIS[0][:, :3], IRIS[0][:, 3]
    forest = kind(7, min_samples_leaf=leaf, random_state=1)
    model = (make_pipeline(StandardScaler(), forest) if scaled else forest).fit(x, y)
    outputs = answering(model, "predict", None)(x)
    assert values(outputs) == list(model.predict(x))  # to the bit
    scaled_x = model[:-1].transform(x) if scaled else x
    each = np.array([tree.predict(scaled_x) for tree in forest.estimators_])
    within = np.array([tree.tree_.impurity[tree.apply(scaled_x)] for tree in forest.estimators_])
    expected = np.sqrt(each.var(axis=0) + within.mean(axis=0))
    [answer] = testing.run(lambda inputs: outputs[:1], [[0.0]], "doubles")
    assert answer.qualifiers == {"stddev": pytest.approx(expected[0])} and answer.confidence is None
    assert len(set(expected.tolist())) > 10


@pytest.mark.parametrize("model", [GaussianProcessRegressor(alpha=0.1), BayesianRidge()])
def test_regressors_that_know_their_spread(model):
    x, y = IRIS[0][:40, :3], IRIS[0][:40, 3]
    model.fit(x, y)
    plain, stddev = model.predict(x, return_std=True)
    outputs = answering(model, "predict", True)(x)
    assert values(outputs) == list(model.predict(x)) == list(plain)
    [answer] = testing.run(lambda inputs: outputs[:1], [[0.0]], "doubles")
    assert answer.qualifiers == {"stddev": stddev[0]}
    assert answering(model, "predict", None)(x) == list(plain)  # it takes more time


def test_several_outputs_have_none():
    x, y = IRIS
    both = RandomForestClassifier(3, random_state=1).fit(x, np.stack([y, y > 1], axis=1))
    numbers = RandomForestRegressor(3, random_state=1).fit(x[:, :2], x[:, 2:])
    for model, given in ((both, x), (numbers, x[:, :2])):
        assert np.array_equal(answering(model, "predict", None)(given), model.predict(given))
    labels = MLPClassifier(max_iter=5, random_state=1).fit(x, np.stack([y == 0, y > 1, y == 1], axis=1))
    assert np.array_equal(answering(labels, "predict", True)(x), labels.predict(x))


def test_a_class_of_ones_own_is_asked_itself():
    """It may predict in another way than the class that it comes from."""

    class Contrary(RandomForestClassifier):
        def predict(self, x):
            return super().predict_proba(x).argmin(axis=1)

    model = Contrary(5, random_state=1).fit(*IRIS)
    assert answering(model, "predict", None)(IRIS[0]) == list(model.predict(IRIS[0]))
    assert values(answering(model, "predict", True)(IRIS[0])) == list(model.predict(IRIS[0]))


def test_a_model_that_has_nothing_to_say(tmp_path):
    model = LinearRegression().fit(*IRIS)
    with pytest.raises(PermanentFailure, match="the predict of a LinearRegression says nothing about its answers"):
        load(Folder(pickled(tmp_path, model, options={"scores": "true"})))
    with pytest.raises(PermanentFailure, match="option scores = 'yes' is unknown"):
        load(Folder(pickled(tmp_path / "yes", model, options={"scores": "yes"})))


def test_the_likeliest_of_many_classes():
    p = np.full((2, 30), 0.01)
    p[0, 7], p[1, 29] = 0.71, 0.71
    first, second = testing.run(lambda inputs: Classes(range(30)).beside([1, 2], p), [[0.0]] * 2, "doubles")
    assert len(first.qualifiers["scores"]) == len(second.qualifiers["scores"]) == 10
    assert next(iter(first.qualifiers["scores"].items())) == ("7", 0.71)
    assert (first.confidence, next(iter(second.qualifiers["scores"]))) == (0.71, "29")


def test_labels_of_any_type():
    labels = [True, 1.5, np.int64(3), 'a "word"', None]
    [answer] = testing.run(lambda inputs: Classes(labels).beside([0], np.full((1, 5), 0.2)), [[0.0]], "doubles")
    assert list(answer.qualifiers["scores"]) == ["true", "1.5", "3", 'a "word"', "null"]


def test_a_row_that_is_no_number_says_nothing():
    rows = np.array([[0.5, 0.5], [math.nan, 1]])
    first, second = testing.run(lambda inputs: Classes("ab").beside([1, 2], rows), [[0.0]] * 2, "doubles")
    assert (first.confidence, second.confidence, second.qualifiers) == (0.5, None, {})


@pytest.mark.parametrize("confidence", [None, 0.25])
def test_fields_in_one_step_are_those_of_an_output(confidence):
    fields = OneQualifier("scores", DType.JSON).encode(confidence, b'{"a":0.5}')
    assert encode(Scored(7, fields)) == encode(Output(7, confidence, {"scores": {"a": 0.5}}))


def test_outputs_that_are_scores():
    logits = np.log(np.array([[0.2, 0.8], [0.5, 0.5]], "float32"))
    outputs = OutputScores(True, ["a", "b"]).beside(logits)
    answers = testing.run(lambda inputs: outputs, [[0.0]] * 2, "doubles")
    assert [a.output for a in answers] == logits.tolist()
    assert answers[0].confidence == pytest.approx(0.8)
    assert answers[0].qualifiers == {"scores": pytest.approx({"a": 0.2, "b": 0.8}, rel=1e-5)}
    with pytest.raises(ValueError, match="there are 3 classes, and the output has 2 numbers"):
        OutputScores(False, [1, 2, 3]).beside(logits)
    with pytest.raises(ValueError, match="vectors of floats, and these are of int64 and 0 dimensions"):
        OutputScores(False, None).beside(np.array([1, 2]))
    with pytest.raises(ValueError, match="one output, and this one has a, b"):
        OutputScores(False, None).beside_named({"a": logits, "b": logits})
