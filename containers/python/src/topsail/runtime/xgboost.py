"""An XGBoost model in its own format."""

from __future__ import annotations

from typing import Any

from .folder import Folder
from .matrix import stack
from .outcome import Outcome
from .refusal import Refused, need


def load(folder: Folder) -> Booster:
    xgboost = need("xgboost")
    outcome = Outcome(folder)
    path = folder.entry()
    try:
        booster = xgboost.Booster({"nthread": 1}, model_file=str(path))
    except xgboost.core.XGBoostError as e:
        raise Refused(f"XGBoost {xgboost.__version__} cannot load {path.name}: {e}") from e
    return Booster(xgboost, booster, outcome)


class Booster:
    def __init__(self, xgboost: Any, booster: Any, outcome: Outcome) -> None:
        self._xgboost, self._booster, self._outcome = xgboost, booster, outcome

    def predict(self, inputs: list[Any]) -> list[Any]:
        batch = self._xgboost.DMatrix(stack(inputs), feature_names=self._booster.feature_names)
        scores = self._booster.predict(batch, output_margin=self._outcome.margin)
        return self._outcome.of(scores)
