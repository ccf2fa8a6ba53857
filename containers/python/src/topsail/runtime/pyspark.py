"""A PySpark model: a saved PipelineModel, or a function of a session, with a saved model or without, and the inputs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from ..container import source
from ..container.source import SourceError
from . import pickled
from .failure import PermanentFailure, need
from .folder import Folder


def load(folder: Folder) -> Any:
    """The entry is the folder of a PipelineModel, a file .pkl, or module:object.

    Options: `master`, local[1] without; of a function `model`, the folder of a saved model that it gets as its second
    argument, and `class`, that model's; of a pipeline `features`, the column of its input vector, and `output`, the
    column that is answered ("features" and "prediction" without).
    """
    session = start(folder.option("master", "local[1]"))
    entry, path = folder.manifest.entry, folder.path / folder.manifest.entry
    if ":" in entry or path.is_file():
        function = _named(entry) if ":" in entry else pickled.load(path)
        if model := folder.option("model", ""):
            of_class = folder.option("class", "pyspark.ml.pipeline.PipelineModel")
            function = _with_model(function, saved(session, of_class, folder.path / model))
        return Function(session, function)
    path = folder.entry()
    pipeline = need("pyspark.ml").PipelineModel.load(str(path))
    return Pipeline(session, pipeline, folder.option("features", "features"), folder.option("output", "prediction"))


_ALONE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class Function:
    """`predict(spark, inputs)` returns a list of outputs."""

    def __init__(self, session: Any, function: Any) -> None:
        if not callable(function):
            kind = type(function).__name__
            raise PermanentFailure(f"the entry is of type {kind}: it must be a function of a session and the inputs")
        self._session, self._function = session, function

    def predict(self, inputs: list[Any]) -> list[Any]:
        with java_of(self._session):
            return list(self._function(self._session, inputs))

    def teardown(self) -> None:
        self._session.stop()


class Pipeline:
    """Rows keep the number of their input, because Spark promises no order."""

    def __init__(self, session: Any, pipeline: Any, features: str, output: str) -> None:
        self._session, self._pipeline = session, pipeline
        self._features, self._output = features, output
        self._dense = need("pyspark.ml.linalg").Vectors.dense

    def predict(self, inputs: list[Any]) -> list[Any]:
        rows = [(i, self._column(x)) for i, x in enumerate(inputs)]
        with java_of(self._session):
            frame = self._session.createDataFrame(rows, ["topsail_row", self._features])
            answers = self._pipeline.transform(frame).select("topsail_row", self._output).collect()
        return [_plain(answer[1]) for answer in sorted(answers, key=lambda a: a[0])]

    def teardown(self) -> None:
        self._session.stop()

    def _column(self, x: Any) -> Any:
        return x if isinstance(x, str) else self._dense([float(v) for v in x])


def start(master: str) -> Any:
    """A session of a Spark in this container alone. It raises PermanentFailure."""
    sql = need("pyspark.sql")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of Spark's workers, which have this environment then
    try:
        builder = sql.SparkSession.builder.master(master).appName("topsail")
        for name, value in _ALONE.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except Exception as e:  # Py4J and Java have their own
        raise PermanentFailure(f"Spark does not start: {e}. It needs Java: set JAVA_HOME where this model runs") from e


@contextmanager
def java_of(session: Any) -> Iterator[None]:
    """Inside, the process ends where the Java of the session has ended: nothing brings it back but a new start."""
    try:
        yield
    except Exception:
        gateway = getattr(getattr(session, "sparkContext", None), "_gateway", None)
        if (status := _status(getattr(gateway, "proc", None))) is not None:
            sys.exit(f"topsail: Spark's Java has ended with status {status}; its last words are above")
        raise


def _status(java: subprocess.Popen[bytes] | None) -> int | None:
    """With which it has ended; None if it runs, or is not known."""
    with suppress(subprocess.TimeoutExpired):
        return java.wait(0.5) if java is not None else None
    return None


def saved(session: Any, of_class: str, path: Path) -> Any:
    """A model that was saved in the folder, by the name of its class: of pyspark.ml, or of pyspark.mllib, which loads
    with a context. It raises PermanentFailure."""
    module, _, name = of_class.rpartition(".")
    if module.partition(".")[0] != "pyspark":
        raise PermanentFailure(f"the model's class is {of_class!r}, which is not one of pyspark")
    try:
        load = getattr(import_module(module), name).load
        place = path.resolve().as_uri()  # whatever file system Spark's own settings have
        return load(session.sparkContext, place) if module.startswith("pyspark.mllib") else load(place)
    except Exception as e:  # Py4J and Java have their own
        raise PermanentFailure(f"Spark cannot load the model in {path.name!r} as {of_class}: {e}") from e


def _with_model(function: Any, model: Any) -> Callable[[Any, list[Any]], Any]:
    """`predict(spark, model, inputs)` as a function of the other two."""
    if not callable(function):
        raise PermanentFailure(
            f"the entry is of type {type(function).__name__}: it must be a function of a session, a model and inputs"
        )
    return lambda session, inputs: function(session, model, inputs)


def _named(entry: str) -> Any:
    try:
        return source.find(entry)
    except SourceError as e:
        raise PermanentFailure(f"the entry {entry!r} cannot be found: {e}") from None


def _plain(value: Any) -> Any:
    """Vectors of Spark as arrays."""
    return value.toArray() if hasattr(value, "toArray") else value
