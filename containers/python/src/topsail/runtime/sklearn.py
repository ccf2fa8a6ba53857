"""A scikit-learn estimator, or whatever has its methods."""

from __future__ import annotations

from typing import Any

from . import pickled
from .folder import Folder
from .matrix import stack
from .refusal import Refused, need

METHODS = ("predict", "predict_proba", "decision_function")


def load(folder: Folder) -> Estimator:
    need("sklearn")
    method = folder.option("method", "predict", METHODS)
    estimator = pickled.load(folder.entry(".pkl"))
    if not callable(getattr(estimator, method, None)):
        raise Refused(f"the model is a {type(estimator).__name__}, which has no {method}")
    return Estimator(estimator, method)


class Estimator:
    def __init__(self, estimator: Any, method: str) -> None:
        self._method = getattr(estimator, method)
        if hasattr(estimator, "n_jobs"):
            estimator.n_jobs = 1  # threads for a batch of a few rows cost more than they win

    def predict(self, inputs: list[Any]) -> Any:
        """An output for each row: a number, a label, or a vector."""
        return list(self._method(stack(inputs)))
