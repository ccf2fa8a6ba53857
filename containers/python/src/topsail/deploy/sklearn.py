"""Estimators of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..container.signature import Signature
from ..runtime.sklearn import TableEstimator
from . import requirements
from .deployment import Deployment
from .example import Example, read
from .failure import DeployFailed
from .frozen import freeze
from .named import alone, by_name, read_named, with_outputs
from .packing import deploy, scored
from .terms import Terms


def deploy_sklearn(
    name: str,
    model: Any,
    example: Any,
    *,
    method: str = "predict",
    scores: bool | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys an estimator or pipeline of scikit-learn. `method` is predict, predict_proba or decision_function. With a
    DataFrame of one row as the example, a row with texts or a dict by the names of columns, it gets a DataFrame, and
    queries name them.

    `scores`: True for confidence and qualifiers beside each answer, False for none. Without it they come from those
    models for which they cost next to nothing.
    """
    said = Terms.of(terms)
    if not callable(getattr(model, method, None)):
        raise DeployFailed(f"the model is a {type(model).__name__}, which has no {method}")
    frozen = freeze(model)
    if hasattr(example, "columns") or str(getattr(example, "dtype", "")) == "object":  # a Series of numbers is a vector
        example = by_name(example)
    named = isinstance(example, Mapping)
    shown = _named(model, method, example, input_type) if named else read(example, input_type)
    needed = ("scikit-learn", "numpy", "scipy", *(["pandas"] if named else []))
    frozen.distributions |= {requirements.need(d, "the model") for d in needed}
    frozen.sources["model.pkl"] = frozen.data
    options = ({} if method == "predict" else {"method": method}) | scored(scores)
    return deploy(name, "sklearn", "model.pkl", frozen, shown, shown.length, options, said)


def _named(model: Any, method: str, example: Mapping[str, Any], input_type: str | None) -> Example:
    shown = read_named(example, input_type)
    signature = shown.signature or Signature()
    for t in signature.inputs:
        if t.shape or t.type in ("bytes", "json"):
            raise DeployFailed(f"the column {t.name!r} is {t}: an example has one number, truth value or text for each")
    requirements.need("pandas", "a model with named columns")
    return with_outputs(shown, example, alone(TableEstimator(model, method, signature).predict))
