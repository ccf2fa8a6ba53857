"""A LightGBM model in its own format."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from . import scores
from .failure import PermanentFailure, need
from .folder import Folder
from .matrix import stack
from .outcome import Outcome

_HEAD = 20  # lines of a model file before its trees


def load(folder: Folder) -> Booster:
    lightgbm = need("lightgbm")
    outcome = Outcome(folder)
    path = folder.entry()
    try:
        booster = lightgbm.Booster(model_file=str(path))
    except lightgbm.basic.LightGBMError as e:
        raise PermanentFailure(f"LightGBM {lightgbm.__version__} cannot load {path.name}: {e}") from e
    wanted = scores.wanted(folder) and not outcome.margin
    return Booster(booster, outcome, _PROBABILITIES.get(_objective(path), "") if wanted else "")


# What an objective's predictions are, where they are probabilities of classes.
_PROBABILITIES = {"binary": "second", "multiclass": "classes"}


def _objective(path: Path) -> str:
    """That of the model, whose file begins with lines such as "objective=binary sigmoid:1"."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in islice(file, _HEAD):
            if line.startswith("objective="):
                return line.removeprefix("objective=").split()[0] if line.strip() != "objective=" else ""
    return ""


class Booster:
    def __init__(self, booster: Any, outcome: Outcome, kind: str = "") -> None:
        self._booster, self._outcome, self._kind = booster, outcome, kind

    def predict(self, inputs: list[Any]) -> list[Any]:
        found = self._booster.predict(stack(inputs), raw_score=self._outcome.margin, num_threads=1)
        return self._outcome.scored(found, self._kind) if self._kind else self._outcome.of(found)
