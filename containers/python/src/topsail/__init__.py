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

from .metrics import Counter, Gauge, Histogram, counter, gauge, histogram
from .output import Drop, Error, Output
from .version import __version__

if TYPE_CHECKING:
    from . import bundle, clipper, deploy
    from .client import Client
    from .client_answers import Learned, Prediction
    from .client_async import AsyncClient
    from .client_errors import (
        BadRequest,
        Conflict,
        NotFound,
        Permission,
        ServerError,
        Timeout,
        TooManyRequests,
        TopsailError,
        Unauthorized,
        Unavailable,
        UnknownApp,
    )
    from .client_requests import Feedback
    from .deploy import (
        DeployFailed,
        Deployment,
        deploy_bundle,
        deploy_host,
        deploy_lightgbm,
        deploy_onnx,
        deploy_pmml,
        deploy_pyspark,
        deploy_python_function,
        deploy_r,
        deploy_sklearn,
        deploy_tensorflow,
        deploy_torch,
        deploy_xgboost,
    )
    from .pipeline import Pipeline
    from .serving import serve

__all__ = [
    "AsyncClient",
    "BadRequest",
    "Client",
    "Conflict",
    "Counter",
    "DeployFailed",
    "Deployment",
    "Drop",
    "Error",
    "Feedback",
    "Gauge",
    "Histogram",
    "Learned",
    "NotFound",
    "Output",
    "Permission",
    "Pipeline",
    "Prediction",
    "ServerError",
    "Timeout",
    "TooManyRequests",
    "TopsailError",
    "Unauthorized",
    "Unavailable",
    "UnknownApp",
    "__version__",
    "bundle",
    "clipper",
    "counter",
    "deploy",
    "deploy_bundle",
    "deploy_host",
    "deploy_lightgbm",
    "deploy_onnx",
    "deploy_pmml",
    "deploy_pyspark",
    "deploy_python_function",
    "deploy_r",
    "deploy_sklearn",
    "deploy_tensorflow",
    "deploy_torch",
    "deploy_xgboost",
    "gauge",
    "histogram",
    "serve",
]

_MODULES = ("bundle", "clipper", "deploy")
_LATER = {
    "client": ["Client"],
    "client_answers": ["Learned", "Prediction"],
    "client_async": ["AsyncClient"],
    "client_errors": [
        "BadRequest",
        "Conflict",
        "NotFound",
        "Permission",
        "ServerError",
        "Timeout",
        "TooManyRequests",
        "TopsailError",
        "Unauthorized",
        "Unavailable",
        "UnknownApp",
    ],
    "client_requests": ["Feedback"],
    "deploy": [
        "DeployFailed",
        "Deployment",
        "deploy_bundle",
        "deploy_host",
        "deploy_lightgbm",
        "deploy_onnx",
        "deploy_pmml",
        "deploy_pyspark",
        "deploy_python_function",
        "deploy_r",
        "deploy_sklearn",
        "deploy_tensorflow",
        "deploy_torch",
        "deploy_xgboost",
    ],
    "pipeline": ["Pipeline"],
    "serving": ["serve"],
}
_HOME = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> object:
    """Imports what clients need when it is asked for: model containers start sooner without HTTP and TLS."""
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOME | set(_MODULES))
