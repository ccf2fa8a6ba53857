"""An XGBoost model in its own format."""

from __future__ import annotations

import json
import math
from typing import Any

from . import scores
from .failure import PermanentFailure, need
from .folder import Folder
from .matrix import stack
from .outcome import Outcome


def load(folder: Folder) -> Booster:
    """Option `missing` is a number that stands for a missing one, beside NaN."""
    xgboost = need("xgboost")
    outcome = Outcome(folder)
    missing = folder.number("missing", math.nan)
    path = folder.entry()
    try:
        booster = xgboost.Booster({"nthread": 1}, model_file=str(path))
    except xgboost.core.XGBoostError as e:
        raise PermanentFailure(f"XGBoost {xgboost.__version__} cannot load {path.name}: {e}") from e
    return Booster(xgboost, booster, outcome, missing, bool(scores.wanted(folder)))


# What an objective's predictions are, where they are probabilities of classes.
_PROBABILITIES = {"multi:softprob": "classes", "binary:logistic": "second"}


class Booster:
    def __init__(self, xgboost: Any, booster: Any, outcome: Outcome, missing: float, wanted: bool = False) -> None:
        """It raises PermanentFailure."""
        self._xgboost, self._booster, self._outcome, self._missing = xgboost, booster, outcome, missing
        learner = json.loads(booster.save_config())["learner"]
        objective = learner["objective"]["name"]
        # This objective gives the class itself, and no scores to find it by; its margins are such scores.
        self._margin = outcome.margin or (outcome.label and objective == "multi:softmax")
        self._many = int(learner["learner_model_param"].get("num_target", 1)) > 1
        given = wanted and not self._margin and not self._many
        self._kind = _PROBABILITIES.get(objective, "") if given else ""
        if outcome.label and self._many and not objective.startswith("binary:"):
            raise PermanentFailure(
                f"the model has several outputs, and its objective is {objective}: output = 'label' is for classifiers"
            )

    def predict(self, inputs: list[Any]) -> list[Any]:
        batch = self._xgboost.DMatrix(stack(inputs), missing=self._missing, feature_names=self._booster.feature_names)
        found = self._booster.predict(batch, output_margin=self._margin)
        if not self._kind:
            return self._outcome.of(found, self._many)
        return self._outcome.scored(found, self._kind)
