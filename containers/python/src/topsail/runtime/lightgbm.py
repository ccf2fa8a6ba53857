"""A LightGBM model in its own format."""

from __future__ import annotations

from typing import Any

from .folder import Folder
from .matrix import stack
from .outcome import Outcome
from .refusal import Refused, need


def load(folder: Folder) -> Booster:
    lightgbm = need("lightgbm")
    outcome = Outcome(folder)
    path = folder.entry()
    try:
        booster = lightgbm.Booster(model_file=str(path))
    except lightgbm.basic.LightGBMError as e:
        raise Refused(f"LightGBM {lightgbm.__version__} cannot load {path.name}: {e}") from e
    return Booster(booster, outcome)


class Booster:
    def __init__(self, booster: Any, outcome: Outcome) -> None:
        self._booster, self._outcome = booster, outcome

    def predict(self, inputs: list[Any]) -> list[Any]:
        scores = self._booster.predict(stack(inputs), raw_score=self._outcome.margin, num_threads=1)
        return self._outcome.of(scores)
