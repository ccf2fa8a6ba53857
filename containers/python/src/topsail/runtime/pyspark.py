"""A PySpark model: a saved PipelineModel, or a function of a session and the inputs."""

from __future__ import annotations

from typing import Any

from .. import source
from ..source import SourceError
from . import pickled
from .folder import Folder
from .refusal import Refused, need


def load(folder: Folder) -> Any:
    """The entry is the folder of a PipelineModel, a file .pkl, or module:object.

    Options: `master`, local[1] without; of a pipeline `features`, the column of its input vector, and `output`, the
    column that is answered ("features" and "prediction" without).
    """
    session = _session(folder)
    entry = folder.manifest.entry
    if ":" in entry:
        return Function(session, _named(entry))
    path = folder.entry()
    if path.is_file():
        return Function(session, pickled.load(path))
    pipeline = need("pyspark.ml").PipelineModel.load(str(path))
    return Pipeline(session, pipeline, folder.option("features", "features"), folder.option("output", "prediction"))


class Function:
    """`predict(spark, inputs)` returns a list of outputs."""

    def __init__(self, session: Any, function: Any) -> None:
        if not callable(function):
            kind = type(function).__name__
            raise Refused(f"the entry is of type {kind}: it must be a function of a session and the inputs")
        self._session, self._function = session, function

    def predict(self, inputs: list[Any]) -> list[Any]:
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
        frame = self._session.createDataFrame(rows, ["topsail_row", self._features])
        answers = self._pipeline.transform(frame).select("topsail_row", self._output).collect()
        return [_plain(answer[1]) for answer in sorted(answers, key=lambda a: a[0])]

    def teardown(self) -> None:
        self._session.stop()

    def _column(self, x: Any) -> Any:
        return x if isinstance(x, str) else self._dense([float(v) for v in x])


def _session(folder: Folder) -> Any:
    sql = need("pyspark.sql")
    try:
        builder = sql.SparkSession.builder.master(folder.option("master", "local[1]")).appName("topsail")
        return builder.config("spark.ui.enabled", "false").getOrCreate()
    except Exception as e:  # Py4J and Java have their own
        raise Refused(f"Spark does not start: {e}. It needs Java: set JAVA_HOME where this model runs") from e


def _named(entry: str) -> Any:
    try:
        return source.find(entry)
    except SourceError as e:
        raise Refused(f"the entry {entry!r} cannot be found: {e}") from None


def _plain(value: Any) -> Any:
    """Vectors of Spark as arrays."""
    return value.toArray() if hasattr(value, "toArray") else value
