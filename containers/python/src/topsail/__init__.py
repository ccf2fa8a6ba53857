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
    from .client import (
        AnswerCut as AnswerCut,
        AsyncClient as AsyncClient,
        AsyncParts as AsyncParts,
        BadRequest as BadRequest,
        Client as Client,
        Conflict as Conflict,
        Feedback as Feedback,
        Learned as Learned,
        NotFound as NotFound,
        Parts as Parts,
        Permission as Permission,
        Prediction as Prediction,
        ServerError as ServerError,
        Timeout as Timeout,
        TooManyRequests as TooManyRequests,
        TopsailError as TopsailError,
        Unauthorized as Unauthorized,
        Unavailable as Unavailable,
        UnknownApp as UnknownApp,
    )
    from .container.pipeline import Pipeline as Pipeline
    from .container.query_session import Session as Session
    from .container.serving import serve as serve, serve_chat as serve_chat
    from .deploy import (
        DeployFailed as DeployFailed,
        Deployment as Deployment,
        deploy_bundle as deploy_bundle,
        deploy_chat as deploy_chat,
        deploy_host as deploy_host,
        deploy_lightgbm as deploy_lightgbm,
        deploy_onnx as deploy_onnx,
        deploy_pipeline as deploy_pipeline,
        deploy_pmml as deploy_pmml,
        deploy_pyspark as deploy_pyspark,
        deploy_python_function as deploy_python_function,
        deploy_r as deploy_r,
        deploy_sklearn as deploy_sklearn,
        deploy_tensorflow as deploy_tensorflow,
        deploy_torch as deploy_torch,
        deploy_xgboost as deploy_xgboost,
    )
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
    "container.pipeline": ["Pipeline"],
    "container.query_session": ["Session"],
    "container.serving": ["serve", "serve_chat"],
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
