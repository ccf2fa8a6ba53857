"""How an estimator of scikit-learn is asked, so that what it knows about its answers comes along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import scores
from .failure import PermanentFailure, need
from .scores import MARGIN, STDDEV, Classes

Answer = Callable[[Any], list[Any]]  # from a batch as a matrix to an output for each row

# Whose predict says the likeliest class of predict_proba, so that one pass gives both. What predict_proba rounds may
# hide which class that is, but for those of _VERY, which go by it themselves.
_VERY = frozenset(
    {
        "BaggingClassifier",
        "CalibratedClassifierCV",
        "DecisionTreeClassifier",
        "ExtraTreeClassifier",
        "ExtraTreesClassifier",
        "RandomForestClassifier",
        "VotingClassifier",
    }
)
_LIKELIEST = _VERY | {
    "AdaBoostClassifier",
    "BernoulliNB",
    "ComplementNB",
    "GaussianNB",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "KNeighborsClassifier",
    "LinearDiscriminantAnalysis",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
}
# Those of them that take so long that probabilities cost next to nothing.
_CHEAP = frozenset(
    {
        "AdaBoostClassifier",
        "BaggingClassifier",
        "CalibratedClassifierCV",
        "ExtraTreesClassifier",
        "HistGradientBoostingClassifier",
        "KNeighborsClassifier",
        "RandomForestClassifier",
        "VotingClassifier",
    }
)
_FORESTS = frozenset({"ExtraTreesRegressor", "RandomForestRegressor"})
_WITH_STD = frozenset({"ARDRegression", "BayesianRidge", "GaussianProcessRegressor"})  # of predict's return_std
_SEARCHES = frozenset({"GridSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV", "RandomizedSearchCV"})
_NEAR = 1e-9  # between two probabilities of which rounding decides


def answering(estimator: Any, method: str, wanted: bool | None) -> Answer:
    """The method of the estimator, with confidence and qualifiers as far as they are `wanted` (scores.wanted). Its
    answers stay the same to the bit. It raises PermanentFailure where there are none to give, and they are wanted."""
    plain = getattr(estimator, method)
    found = None if wanted is False else _scored(estimator, method, plain, bool(wanted))
    if found is None and wanted:
        raise PermanentFailure(
            f"the option scores is true, and the {method} of a {type(last_of(estimator)).__name__} says nothing about "
            "its answers: leave it out"
        )
    return found or (lambda x: rows_of(plain(x)))


def rows_of(found: Any) -> list[Any]:
    """An output for each row. Probabilities of several outputs come as a matrix for each of them."""
    if isinstance(found, list) and found and all(getattr(p, "ndim", 0) == 2 for p in found):
        return list(zip(*found, strict=True))
    return list(found)


def _scored(estimator: Any, method: str, plain: Any, all_: bool) -> Answer | None:
    last = last_of(estimator)
    kind = type(last).__name__ if type(last).__module__.startswith("sklearn.") else ""
    labels: Any = getattr(estimator, "classes_", None)
    if getattr(labels, "ndim", 0) != 1:  # a regressor, or one with several outputs
        return _regressor(estimator, last, kind, all_) if method == "predict" and labels is None else None
    if not (all_ or kind in _CHEAP):
        return None
    if method == "predict_proba":
        classes = Classes(labels)
        return lambda x: _beside_themselves(classes, plain(x))
    if method == "decision_function":
        return lambda x: _with_margins(scores_of := plain(x), scores_of)
    if kind in _LIKELIEST and hasattr(estimator, "predict_proba"):
        logits = kind == "GradientBoostingClassifier" and last.loss == "log_loss"
        likely = _of_logits(estimator.decision_function) if logits else estimator.predict_proba
        return _Likeliest(estimator, labels, likely, _is_very(last, kind))
    if hasattr(estimator, "predict_proba"):
        return _InTwoPasses(estimator, labels)
    if hasattr(estimator, "decision_function"):
        return lambda x: _with_margins(estimator.predict(x), estimator.decision_function(x))
    return None


def last_of(estimator: Any) -> Any:
    """The one that predicts, of a pipeline, a search or a regressor of a transformed target."""
    while type(estimator).__module__.startswith("sklearn."):
        if type(estimator).__name__ == "Pipeline":
            estimator = estimator.steps[-1][1]
        elif type(estimator).__name__ in _SEARCHES and hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif type(estimator).__name__ == "TransformedTargetRegressor" and hasattr(estimator, "regressor_"):
            estimator = estimator.regressor_
        else:
            break
    return estimator


def _is_very(last: Any, kind: str) -> bool:
    return kind in _VERY or (kind == "KNeighborsClassifier" and last.weights == "uniform")


class _Likeliest:
    """The label is the likeliest class. Where rounding may decide which that is, predict says it."""

    def __init__(self, estimator: Any, labels: Any, probabilities: Callable[[Any], Any], very: bool) -> None:
        self._estimator, self._labels, self._classes = estimator, labels, Classes(labels)
        self._probabilities, self._very = probabilities, very

    def __call__(self, x: Any) -> list[Any]:
        p = self._probabilities(x)
        predicted = p.argmax(axis=1)
        near = not self._very and not scores.margins(p).min() > _NEAR  # not NaN either
        values = self._estimator.predict(x) if near else self._labels.take(predicted)
        return self._classes.beside(list(values), p, _indices(self._labels, values) if near else predicted)


def _of_logits(decide: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What predict_proba makes of them, which takes scikit-learn a third as long as the trees themselves."""
    expit = need("scipy.special").expit

    def probabilities(x: Any) -> Any:
        found = decide(x)
        return scores.softmax(found) if found.ndim > 1 else scores.two(expit(found))

    return probabilities


class _InTwoPasses:
    """The label is what predict says, and the confidence is the probability of that class, which need not be the
    likeliest: an SVC decides otherwise."""

    def __init__(self, estimator: Any, labels: Any) -> None:
        self._estimator, self._labels, self._classes = estimator, labels, Classes(labels)

    def __call__(self, x: Any) -> list[Any]:
        values, p = self._estimator.predict(x), self._estimator.predict_proba(x)
        if values.ndim != 1 or p.ndim != 2:  # several labels for each row
            return list(values)
        return self._classes.beside(list(values), p, _indices(self._labels, values))


def _indices(labels: Any, values: Any) -> Any:
    """Those of values among the labels, which are sorted."""
    return need("numpy").searchsorted(labels, values)


def _beside_themselves(classes: Classes, p: Any) -> list[Any]:
    return classes.beside(list(p), p) if p.ndim == 2 else list(p)


def _with_margins(values: Any, found: Any) -> list[Any]:
    one_label = values is found or values.ndim == 1
    return scores.number_beside(MARGIN, list(values), scores.margins(found)) if one_label else list(values)


def _regressor(estimator: Any, last: Any, kind: str, all_: bool) -> Answer | None:
    if kind in _FORESTS and getattr(last, "n_outputs_", 0) == 1 and hasattr(last, "_validate_X_predict"):
        if estimator is last:
            return _Forest(last, lambda x: x)
        if type(estimator).__name__ == "Pipeline" and estimator.steps[-1][1] is last and len(estimator) > 1:
            return _Forest(last, estimator[:-1].transform)
    if all_ and kind in _WITH_STD and type(estimator).__name__ in (kind, "Pipeline"):
        return lambda x: _with_std(*estimator.predict(x, return_std=True))
    return None


def _with_std(values: Any, stddev: Any) -> list[Any]:
    return scores.number_beside(STDDEV, list(values), stddev)


class _Forest:
    """A forest of regressors. The distribution is the mean of those of the leaves: its variance is that between the
    trees and the mean one within their leaves, which is known where trees were split by it."""

    def __init__(self, forest: Any, transform: Callable[[Any], Any]) -> None:
        self._forest, self._transform = forest, transform
        trees = [e.tree_ for e in forest.estimators_]
        self._trees = [(t, t.value[:, 0, 0], t.impurity) for t in trees]
        self._variance_within = forest.criterion in ("squared_error", "friedman_mse")

    def __call__(self, x: Any) -> list[Any]:
        numpy = need("numpy")
        x = self._forest._validate_X_predict(self._transform(x))
        each = numpy.empty((len(self._trees), x.shape[0]))
        mean, within = numpy.zeros(x.shape[0]), numpy.zeros(x.shape[0])
        for row, (tree, value, impurity) in zip(each, self._trees, strict=True):
            leaves = tree.apply(x)
            value.take(leaves, out=row)
            mean += row  # in the order in which the forest's own predict adds them
            within += impurity.take(leaves)
        mean /= len(self._trees)
        variance = each.var(axis=0) + (within / len(self._trees) if self._variance_within else 0)
        return scores.number_beside(STDDEV, list(mean), numpy.sqrt(numpy.maximum(variance, 0)))  # rounding may go below
