"""Models of XGBoost and LightGBM."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from .compared import Ask, compared
from .deployment import Deployment
from .example import Example, read
from .failure import DeployFailed
from .named import reading
from .packing import deploy, file, named_classes, scored
from .terms import Terms


def deploy_xgboost(
    name: str,
    model: Any,
    example: Any,
    *,
    output: str | None = None,
    scores: bool | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a Booster or a model of XGBoost. `output` is value, margin, or label, which is what classifiers give
    without it. With `scores`, classifiers answer with their confidence and the probability of each class."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    booster = _trees(model) if hasattr(model, "get_booster") else model
    if not hasattr(booster, "save_raw"):
        raise DeployFailed(f"the model is a {type(model).__name__}: give a Booster or a model of XGBoost")
    _refuse_categories(model)
    frozen = file("model.ubj", bytes(booster.save_raw("ubj")), "xgboost")
    options = _outcome(model, output) | scored(scores) | _missing(getattr(model, "missing", None))
    ask = model.predict if booster is not model else _of_matrix(model)
    comparison = None if output else compared(said.check, _table(shown), ask, reading(shown))
    return deploy(name, "xgboost", "model.ubj", frozen, shown, shown.length, options, said, comparison)


def deploy_lightgbm(
    name: str,
    model: Any,
    example: Any,
    *,
    output: str | None = None,
    scores: bool | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a Booster or a model of LightGBM. `output` is value, margin, or label, which is what classifiers give
    without it. With `scores`, classifiers answer with their confidence and the probability of each class."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    booster = getattr(model, "booster_", model)
    if not hasattr(booster, "model_to_string"):
        raise DeployFailed(f"the model is a {type(model).__name__}: give a Booster or a model of LightGBM")
    _refuse_categories(model)
    frozen = file("model.txt", booster.model_to_string().encode(), "lightgbm")
    options = _outcome(model, output) | scored(scores)
    comparison = None if output else compared(said.check, _table(shown), model.predict, reading(shown))
    return deploy(name, "lightgbm", "model.txt", frozen, shown, shown.length, options, said, comparison)


def _table(shown: Example) -> Any:
    """The example as a matrix of one row, which these models take."""
    return import_module("numpy").asarray([shown.value])


def _of_matrix(booster: Any) -> Ask:
    matrix = import_module("xgboost").DMatrix
    return lambda table: booster.predict(matrix(table, feature_names=booster.feature_names))


def trained_on_categories(model: Any) -> str:
    """The columns of pandas' type category that the model was trained on, or their values; empty if there were none.
    What it takes for them is their place among the categories of that column, of which a number says nothing."""
    if hasattr(model, "get_booster") and not getattr(model, "feature_types", None):  # else the numbers are the places
        return _categorical(model.get_booster())
    booster = getattr(model, "booster_", model)
    if values := getattr(booster, "pandas_categorical", None):
        return f"of the categories {str(values)[1:-1]}"
    return _categorical(booster) if hasattr(booster, "save_raw") else ""


def trained_in(model: Any) -> list[list[Any]]:
    """The categories of those columns, in their order, where the model knows them: LightGBM's do."""
    return list(getattr(getattr(model, "booster_", model), "pandas_categorical", None) or [])


def _categorical(booster: Any) -> str:
    """Without names of columns, it was trained on an array of places."""
    kinds, names = booster.feature_types or [], booster.feature_names or []
    return ", ".join(name for name, kind in zip(names, kinds, strict=False) if kind == "c")


def _refuse_categories(model: Any) -> None:
    if found := trained_on_categories(model):
        raise DeployFailed(
            f"the model was trained on columns of the type category ({found}), and a row of numbers does not say which "
            "category is meant: deploy it by deploy_sklearn with a DataFrame of one row as the example, X.iloc[:1], or "
            "a Booster by deploy_python_function with a function that makes such a DataFrame"
        )


def _trees(model: Any) -> Any:
    """The booster with what the model itself predicts with: where training was stopped early, the trees up to the best
    one. A linear booster has none, and counts as a whole."""
    booster = model.get_booster()
    best = getattr(model, "best_iteration", None)
    return booster if best is None or model.booster == "gblinear" else booster[: best + 1]


def _missing(value: float | None) -> dict[str, str]:
    """The number that the model takes for a missing one, beside NaN."""
    return {} if value is None or math.isnan(value) else {"missing": repr(float(value))}


def _outcome(model: Any, output: str | None) -> dict[str, str]:
    """Classifiers give labels, as they do in Python; what they call them goes along. With a function as the objective
    LightGBM's give scores, of which it does not know what they mean."""
    classes: Iterable[Any] | None = getattr(model, "classes_", None)
    if hasattr(model, "booster_") and callable(getattr(model, "objective", None)):
        if output == "label":
            raise DeployFailed("the model's objective is a function, so that its scores say no label: leave output out")
        classes = None
    if output is None and classes is None:
        return {}
    chosen = {"output": output or "label"}
    if chosen["output"] != "label" or classes is None:
        return chosen
    return chosen | {"classes": named_classes(classes)}
