"""Serve a Python model with Topsail, ask an app, or manage what there is.

    import topsail

    def predict(inputs):            # a list of inputs in, a list of the same length out
        return [sum(x) for x in inputs]

    topsail.serve(predict, input_type="doubles")

    client = topsail.Client("http://127.0.0.1:1337")
    client.predict("sum", [1, 2, 3.5]).output

    topsail.deploy_sklearn("iris", estimator, example=X[0]).predict(X[0]).output

See the README for classes with setup and warm-up, outputs, metrics, and `python -m topsail`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what _PUBLIC says, for type checkers
    from . import bundle as bundle, clipper as clipper, deploy as deploy
    from .client import *  # noqa: F403
    from .container.pipeline import Pipeline as Pipeline, StageError as StageError
    from .container.query_session import Session as Session
    from .container.serving import serve as serve, serve_chat as serve_chat
    from .decider import Decider as Decider
    from .deploy import *  # noqa: F403
    from .metrics import (
        Counter as Counter,
        Gauge as Gauge,
        Histogram as Histogram,
        counter as counter,
        gauge as gauge,
        histogram as histogram,
    )
    from .output import BadInput as BadInput, Drop as Drop, Error as Error, Output as Output
    from .version import __version__ as __version__

# The public names by the modules that define them. Each is imported when it is first asked for: model containers start
# without the client's HTTP and TLS, and clients without the container.
_PUBLIC = {
    "client": [
        "AnswerCut",
        "AsyncClient",
        "AsyncParts",
        "BadRequest",
        "Client",
        "Conflict",
        "Feedback",
        "Learned",
        "NotFound",
        "Parts",
        "Permission",
        "Prediction",
        "ServerError",
        "Timeout",
        "TooManyRequests",
        "TopsailError",
        "Unauthorized",
        "Unavailable",
        "UnknownApp",
    ],
    "container.pipeline": ["Pipeline", "StageError"],
    "container.query_session": ["Session"],
    "container.serving": ["serve", "serve_chat"],
    "decider": ["Decider"],
    "deploy": [
        "DeployFailed",
        "Deployment",
        "deploy_bundle",
        "deploy_chat",
        "deploy_host",
        "deploy_lightgbm",
        "deploy_onnx",
        "deploy_pipeline",
        "deploy_pmml",
        "deploy_pyspark",
        "deploy_python_function",
        "deploy_r",
        "deploy_sklearn",
        "deploy_tensorflow",
        "deploy_torch",
        "deploy_xgboost",
    ],
    "metrics": ["Counter", "Gauge", "Histogram", "counter", "gauge", "histogram"],
    "output": ["BadInput", "Drop", "Error", "Output"],
    "version": ["__version__"],
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}
_MODULES = ("bundle", "clipper", "deploy", "metrics", "output", "testing")

__all__ = sorted([*_HOME, "bundle", "clipper", "deploy"])


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOME | set(_MODULES))
