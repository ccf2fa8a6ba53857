"""Models of XGBoost and LightGBM."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .deployment import Deployment
from .example import read
from .failure import DeployFailed
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
    frozen = file("model.ubj", bytes(booster.save_raw("ubj")), "xgboost")
    options = _outcome(model, output) | scored(scores) | _missing(getattr(model, "missing", None))
    return deploy(name, "xgboost", "model.ubj", frozen, shown, shown.length, options, said)


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
    frozen = file("model.txt", booster.model_to_string().encode(), "lightgbm")
    options = _outcome(model, output) | scored(scores)
    return deploy(name, "lightgbm", "model.txt", frozen, shown, shown.length, options, said)


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
    """Classifiers give labels, as they do in Python; what they call them goes along."""
    classes: Iterable[Any] | None = getattr(model, "classes_", None)
    if output is None and classes is None:
        return {}
    chosen = {"output": output or "label"}
    if chosen["output"] != "label" or classes is None:
        return chosen
    return chosen | {"classes": named_classes(classes)}
