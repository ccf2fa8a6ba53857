"""What the bundle of topsail.deploy_pipeline runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..container.pipeline import Pipeline, description
from .estimator import Answer
from .matrix import stack
from .sklearn import single_threaded


class InOneProcess:
    """All stages of a pipeline in this process, for a trial of its bundle. `stages` are those of TOPSAIL_STAGES."""

    def __init__(self, stages: str) -> None:
        found = description.read(stages).stages
        self._pipeline = Pipeline.of(replace(stage, served=stage.find(), code="") for stage in found)
        self._local: Any = None

    def setup(self) -> None:
        from ..container.pipeline.local import Local  # which loads what only a trial needs

        self._local = Local(self._pipeline.stages, as_served=False)
        self._local.load()

    def predict(self, inputs: Sequence[Any]) -> list[Any]:
        return list(self._local.run(inputs))

    def teardown(self) -> None:
        if self._local:
            self._local.teardown()


class EstimatorStage:
    """An estimator of scikit-learn as a stage: it predicts, or transforms where it does no more. The last stage also
    says how sure it is, as the runtime `sklearn` does."""

    def __init__(self, estimator: Any, last: bool = False) -> None:
        self.estimator, self._last = estimator, last
        self._answer: Answer | None = None

    def setup(self) -> None:
        if hasattr(self.estimator, "predict"):
            self._answer = single_threaded(self.estimator, "predict", None if self._last else False)
        else:
            self._answer = lambda x: list(self.estimator.transform(x))

    def predict(self, inputs: list[Any]) -> list[Any]:
        assert self._answer, "setup comes first"
        return self._answer(stack(inputs))
