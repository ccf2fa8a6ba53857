"""A scikit-learn estimator, or whatever has its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..container.signature import Signature
from . import pickled, scores
from .estimator import Answer, answering
from .failure import PermanentFailure, need
from .folder import Folder
from .matrix import stack
from .named import Arrays, dtypes, is_vector

METHODS = ("predict", "predict_proba", "decision_function")


def load(folder: Folder) -> Estimator | TableEstimator:
    need("sklearn")
    method = folder.option("method", "predict", METHODS)
    wanted = scores.wanted(folder)
    estimator = pickled.load(folder.entry() if folder.manifest.entry.endswith(".joblib") else folder.entry(".pkl"))
    if not callable(getattr(estimator, method, None)):
        raise PermanentFailure(f"the model is a {type(estimator).__name__}, which has no {method}")
    if folder.named and not is_vector(folder.named):
        return TableEstimator(estimator, method, folder.named, wanted, folder.lists("categories"))
    return Estimator(estimator, method, wanted)


class Estimator:
    def __init__(self, estimator: Any, method: str, wanted: bool | None = False) -> None:
        self._answer = single_threaded(estimator, method, wanted)

    def predict(self, inputs: list[Any]) -> Any:
        """An output for each row: a number, a label, or a vector."""
        return self._answer(stack(inputs))


class TableEstimator:
    """One that takes a DataFrame, with a column of its own type for each input of a signature. Some may be of
    `categories`; a value that is none of them is a missing one, as it is to pandas."""

    batched = True

    def __init__(
        self,
        estimator: Any,
        method: str,
        signature: Signature,
        wanted: bool | None = False,
        categories: Mapping[str, list[Any]] | None = None,
    ) -> None:
        self._pandas = need("pandas")
        self._answer = single_threaded(estimator, method, wanted)
        self._dtypes, self._categories = dtypes(signature), categories or {}

    def predict(self, inputs: Arrays) -> Any:
        return self._answer(self._pandas.DataFrame({name: self._column(name, x) for name, x in inputs.items()}))

    def _column(self, name: str, x: Any) -> Any:
        if name in self._categories:
            return self._pandas.Categorical(x, self._categories[name])
        return x.astype(self._dtypes[name])


def single_threaded(estimator: Any, method: str, wanted: bool | None) -> Answer:
    if hasattr(estimator, "n_jobs"):
        estimator.n_jobs = 1  # threads for a batch of a few rows cost more than they win
    return answering(estimator, method, wanted)
