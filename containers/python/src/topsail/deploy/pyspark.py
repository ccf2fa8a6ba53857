"""Models of Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from . import requirements
from .deployment import Deployment
from .example import read
from .failure import DeployFailed
from .frozen import Frozen, freeze
from .packing import deploy, files_of, with_numpy
from .terms import Terms


def deploy_pyspark(
    name: str,
    model: Any,
    example: Any,
    func: Callable[[Any, Any, list[Any]], Any] | None = None,
    *,
    master: str = "local[1]",
    features: str | None = None,
    output: str | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a model of pyspark.ml or pyspark.mllib that can be saved, with a function from a session, the model and a
    list of inputs to a list of outputs of the same length. A PipelineModel needs no function: `features` is the column
    that its inputs are in, and `output` the one that is answered. `master` says with how many threads Spark runs, as
    "local[4]". Where it runs it needs Java."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    of_class = f"{type(model).__module__}.{type(model).__name__}"
    given = {"master": master if master != "local[1]" else None, "features": features, "output": output}
    if func is None and type(model).__name__ != "PipelineModel":
        raise DeployFailed(f"the model is a {of_class}: give func(spark, model, inputs), or a PipelineModel")
    if func is not None and (features or output):
        raise DeployFailed("features and output are for a PipelineModel without func: leave them out")
    frozen = Frozen(b"") if func is None else freeze(func)
    frozen.distributions |= {requirements.need("pyspark", "trying the model")} | with_numpy()
    frozen.sources |= _saved_by_spark(model)
    if func is not None:
        frozen.sources["function.pkl"] = frozen.data
        given |= {"model": "model", "class": of_class}
    options = {k: v for k, v in given.items() if v is not None}
    entry, length = ("function.pkl", 0) if func else ("model", shown.length)
    return deploy(name, "pyspark", entry, frozen, shown, length, options, said)


def _saved_by_spark(model: Any) -> dict[str, bytes]:
    """The files of the saved model, below `model`."""
    with tempfile.TemporaryDirectory(prefix="topsail-") as made:
        folder = Path(made, "model")
        try:
            if type(model).__module__.startswith("pyspark.mllib"):
                model.save(import_module("pyspark").SparkContext.getOrCreate(), folder.as_uri())
            else:
                model.save(folder.as_uri())
        except Exception as e:  # Py4J and Java have their own
            raise DeployFailed(f"Spark cannot save the model, a {type(model).__name__}: {e}") from e
        files = files_of(folder, "model/")
    if not files:
        raise DeployFailed("Spark saved the model on another machine: load it in a session with the master local[1]")
    return files
