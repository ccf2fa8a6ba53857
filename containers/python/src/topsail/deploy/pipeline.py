"""Pipelines: models that are stages, each with its own processes and batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..container.pipeline import Pipeline, description
from ..container.pipeline.stage import Batching, PipelineError, Stage
from ..runtime.stages import EstimatorStage
from . import requirements
from .deployment import Deployment
from .example import read
from .failure import DeployFailed
from .frozen import Frozen
from .packing import pack, with_numpy
from .python import frozen_function
from .rollout import roll_out
from .terms import Terms

_MODULE = "topsail_stages"

# The stage of a name is unpickled when it is looked up, which only its own workers do.
_SOURCE = '''"""The stages that topsail.deploy_pipeline has packed, by their names."""

import pickle
from pathlib import Path

_STAGES = {stages!r}


def __getattr__(name):
    if name == "_pipeline":
        from topsail.runtime.stages import InOneProcess

        return InOneProcess(_STAGES)
    path = Path(__file__).parent / "stages" / (name + ".pkl")
    if not path.is_file():
        raise AttributeError(name)
    with path.open("rb") as file:
        return pickle.load(file)
'''


def deploy_pipeline(
    name: str,
    steps: Pipeline | Iterable[Any],
    example: Any = None,
    *,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a pipeline as one version with stages. `steps` are a `topsail.Pipeline`, whose stages may say their
    workers and batches and may branch and join; or a list, of which each step takes the outputs of the one before:
    steps alone, or pairs of a name and a step.

    A step is what `deploy_python_function` takes, or an estimator of scikit-learn, which predicts or transforms. Steps
    of a list have one worker, and batches as large as the deadlines allow. What the steps use travels with them.
    """
    said = Terms.of(terms)
    for term in ("batch", "hosted_by"):
        if getattr(said, term) is not None:
            raise DeployFailed(
                f"{term} is for models without stages: leave it out, and use topsail.Pipeline for batches"
            )
    if isinstance(example, Mapping):
        raise DeployFailed("the input of a pipeline is a vector, a text or bytes: give such an example, not a dict")
    shown = read(example, input_type)
    try:
        stages = (steps if isinstance(steps, Pipeline) else _in_turn(steps)).stages
    except PipelineError as e:
        raise DeployFailed(str(e)) from None
    frozen, packed = Frozen(b"", with_numpy() if shown.input_type not in ("strings", "bytes") else set()), []
    for stage in stages:
        packed.append(_packed(stage, stage is stages[-1], frozen))
    frozen.sources[f"{_MODULE}.py"] = _SOURCE.format(stages=description.write(packed)).encode()
    bundle = pack("python", f"{_MODULE}:_pipeline", frozen, shown, shown.length, {}, said)
    return roll_out(name, bundle, said, stages=[_member(stage) for stage in packed])


def _in_turn(steps: Iterable[Any]) -> Pipeline:
    """It raises PipelineError."""
    pipeline = Pipeline()
    for step in steps:
        name, stage = step if isinstance(step, tuple) and len(step) == 2 else (None, step)
        if _is_estimator(stage):
            name, stage = name or type(stage).__name__, EstimatorStage(stage)
        pipeline.add(stage, name=name, batch="aimd")
    return pipeline


def _packed(stage: Stage, last: bool, frozen: Frozen) -> Stage:
    """The stage by its code, which is added to what is frozen. It raises DeployFailed."""
    served = stage.served
    if _is_estimator(served):
        served = EstimatorStage(served)
    if isinstance(served, EstimatorStage):
        served = EstimatorStage(served.estimator, last)
        frozen.distributions |= {requirements.need(d, "the model") for d in ("scikit-learn", "numpy", "scipy")}
    try:
        own, entry = frozen_function(stage.code or served)
    except DeployFailed as e:
        raise DeployFailed(f"stage {stage.name!r}: {e}") from None
    frozen.distributions |= own.distributions
    frozen.sources |= {name: data for name, data in own.sources.items() if name != entry}
    if not stage.code:
        frozen.sources[f"stages/{stage.name}.pkl"] = own.data
    return replace(stage, served=None, code=stage.code or f"{_MODULE}:{stage.name}")


def _is_estimator(step: Any) -> bool:
    """Whether it has the methods of one of scikit-learn."""
    made = callable(getattr(step, "get_params", None)) and not isinstance(step, type)
    return made and (hasattr(step, "predict") or hasattr(step, "transform"))


def _member(stage: Stage) -> dict[str, Any]:
    """A stage as the API has it."""
    batch = {
        "strategy": stage.batch.strategy,
        "max_size": stage.batch.max_size,
        "delay_micros": stage.batch.delay_micros,
        "pad": stage.batch.pad,
    }
    members = {
        "name": stage.name,
        "after": list(stage.sources),
        "code": stage.code,
        "workers": stage.workers,
        "cpus": list(stage.cpus),
        "cpus_per_worker": stage.cpus_per_worker if stage.cpus_per_worker > 1 else None,
        "batch": {k: v for k, v in batch.items() if v} if stage.batch != Batching() else None,
        "max_queue": stage.max_queue,
        "idempotent": stage.idempotent,
    }
    return {k: v for k, v in members.items() if v}
