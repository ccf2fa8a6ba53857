"""`python -m topsail check`: loads a model and tries it, as a container would."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ..container.dry_run import Answer, dry_run
from ..container.loading import prepare, warm_up
from ..container.pipeline import Pipeline
from ..container.pipeline.local import Local
from ..container.pipeline.stage import INPUT, Stage
from ..container.runner import Runner
from ..output import BadInput
from ..protocol.constants import Status
from .table import millis, table

T = TypeVar("T")


class CheckFailed(Exception):
    """What keeps the model from being served; the text is a sentence."""


class Check:
    """Runs the steps and keeps a row of the table for each."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []

    def run(self, served: Any, input_type: str | None, input_length: int | None, given: Sequence[Any]) -> None:
        """It raises CheckFailed, or what loading raises."""
        runner = self._step("load", 0, lambda: prepare(served, input_type, input_length), lambda r: _taken(r))
        try:
            examples = self._warm_up(runner) + list(given)
            if not examples:
                raise CheckFailed("there is nothing to try: give --example '[1.0, 2.0]', or the model a warmup method")
            self._try_all(lambda inputs: dry_run(runner, inputs), examples)
        finally:
            runner.teardown()

    def run_pipeline(
        self, pipeline: Pipeline, input_type: str | None, input_length: int | None, given: Sequence[Any]
    ) -> None:
        """The same for a pipeline: each stage loads and warms up, and examples go through all of them."""
        with Local(pipeline.stages, input_type, input_length) as local:
            for stage in local.stages:
                self._step(f"load {stage.name}", 0, partial(local.load_stage, stage), partial(_taken_by, stage))
            for name, runner in local.runners.items():
                if examples := runner.model.warmup():
                    self._step(f"warm-up {name}", len(examples), partial(warm_up, runner), _summary)
            examples = local.runners[local.stages[0].name].model.warmup() + list(given)
            if not examples:
                raise CheckFailed(
                    "there is nothing to try: give --example '[1.0, 2.0]', or the first stage a warmup method"
                )
            self._try_all(local.dry_run, examples)
            for stage in local.stages:
                self.rows.append(
                    [f"  {stage.name}", str(len(local.came[stage.name])), millis(local.took[stage.name]), ""]
                )

    def _try_all(self, answer: Callable[[list[Any]], list[Answer]], examples: list[Any]) -> None:
        for index, example in enumerate(examples[:8]):
            self._try(f"example {index}", answer, [example])
        self._try("as a batch", answer, (examples * 3)[: max(3, len(examples))])

    def _warm_up(self, runner: Runner) -> list[Any]:
        examples = runner.model.warmup()
        if examples:
            self._step("warm-up", len(examples), lambda: warm_up(runner), _summary)
        return examples

    def _try(self, name: str, answer: Callable[[list[Any]], list[Answer]], inputs: list[Any]) -> None:
        try:
            answers = self._step(name, len(inputs), lambda: answer(inputs), _summary)
        except BadInput as e:
            raise CheckFailed(str(e)) from None
        for index, one in enumerate(answers):
            where = name if len(answers) == 1 else f"{name}, input {index}"
            if one.error is not None and one.status != Status.DROPPED:
                raise CheckFailed(f"{where}: {one.error}")
            if not _finite(one.output):
                raise CheckFailed(f"{where}: the output is NaN or infinite, which JSON cannot carry")

    def _step(self, name: str, inputs: int, do: Callable[[], T], say: Callable[[T], str]) -> T:
        began = time.perf_counter()
        result = do()
        took = time.perf_counter() - began
        self.rows.append([name, str(inputs or ""), millis(took), say(result)])
        return result

    def table(self) -> str:
        return table(["step", "inputs", "ms", "result"], self.rows, left=(0, 3))


def _taken(runner: Runner) -> str:
    length = f" of length {runner.input_length}" if runner.input_length else ""
    kind = runner.input_type.name if runner.input_type else "anything"
    return f"{runner.model.name} takes {kind}{length}"


def _taken_by(stage: Stage, runner: Runner) -> str:
    if stage.sources == (INPUT,):
        return _taken(runner)
    return f"{runner.model.name} takes what comes from {' and '.join(stage.sources)}"


def _summary(answers: list[Answer]) -> str:
    """The first answer, and how many were errors."""
    errors = sum(a.error is not None and a.status != Status.DROPPED for a in answers)
    return f"{errors} of {len(answers)} failed" if errors else _describe(answers[0])


def _describe(answer: Answer) -> str:
    if answer.error is not None:
        return f"dropped: {answer.error}"
    text = repr(answer.output)
    kind = answer.dtype.name.lower() if answer.dtype else ""
    shape = str(list(answer.shape)) if answer.shape else ""
    sure = "" if answer.confidence is None else f", confidence {answer.confidence:.3g}"
    return f"{kind}{shape} {text if len(text) <= 50 else text[:47] + '...'}{sure}"


def _finite(output: Any) -> bool:
    if isinstance(output, list):
        return all(map(_finite, output))
    return not isinstance(output, float) or math.isfinite(output)
