"""Estimators of scikit-learn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ..container.signature import Signature
from ..runtime.estimator import last_of, rows_of
from ..runtime.matrix import stack
from ..runtime.sklearn import TableEstimator
from . import requirements
from .compared import compared
from .deployment import Deployment
from .example import Example, read
from .failure import DeployFailed
from .frozen import freeze
from .named import alone, by_name, categories_of, check_categories, frame_of, read_named, reading, with_outputs
from .packing import deploy, scored
from .terms import Terms
from .trees import trained_in, trained_on_categories


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
    categories = categories_of(example)
    check_categories(categories, trained_in(last_of(model)))
    if not categories and (found := trained_on_categories(last_of(model))):
        raise DeployFailed(
            f"the model was trained on columns of the type category ({found}), and the example does not say which "
            "category is meant: give a DataFrame of one row, X.iloc[:1], whose columns have that type"
        )
    given = example
    if hasattr(example, "columns") or str(getattr(example, "dtype", "")) == "object":  # a Series of numbers is a vector
        example = by_name(example, categories)
    named = isinstance(example, Mapping)
    shown = _named(model, method, example, input_type, categories) if named else read(example, input_type)
    needed = ("scikit-learn", "numpy", "scipy", *(["pandas"] if named else []))
    frozen.distributions |= {requirements.need(d, "the model") for d in needed}
    frozen.sources["model.pkl"] = frozen.data
    options = ({} if method == "predict" else {"method": method}) | scored(scores)
    if categories:
        options["categories"] = json.dumps(categories)
    table = frame_of(given, example) if named else [shown.value]
    comparison = compared(said.check, table, lambda x: _answers(model, method, x), reading(shown, categories))
    return deploy(name, "sklearn", "model.pkl", frozen, shown, shown.length, options, said, comparison)


def _answers(model: Any, method: str, table: Any) -> list[Any]:
    """What the model says here to a DataFrame, an array, or a list of rows, which may be dicts."""
    if isinstance(table, list):
        if isinstance(table[0], Mapping):
            table = import_module("pandas").DataFrame(table)
        elif isinstance(table[0], str):
            table = stack(table)
        else:
            table = import_module("numpy").asarray(table)
    return rows_of(getattr(model, method)(table))


def _named(
    model: Any, method: str, example: Mapping[str, Any], input_type: str | None, categories: Mapping[str, list[Any]]
) -> Example:
    shown = read_named(example, input_type)
    signature = shown.signature or Signature()
    for t in signature.inputs:
        if t.shape or t.type in ("bytes", "json"):
            raise DeployFailed(f"the column {t.name!r} is {t}: an example has one number, truth value or text for each")
    requirements.need("pandas", "a model with named columns")
    return with_outputs(shown, example, alone(TableEstimator(model, method, signature, categories=categories).predict))
