"""Serve a Python model with Topsail, or ask an app.

    import topsail

    def predict(inputs):            # a list of inputs in, a list of the same length out
        return [sum(x) for x in inputs]

    topsail.serve(predict, input_type="doubles")

    client = topsail.Client("http://127.0.0.1:1337")
    client.predict("sum", [1, 2, 3.5]).output

See the README for classes with setup and warm-up, outputs, metrics, and `python -m topsail`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .metrics import Counter, Gauge, Histogram, counter, gauge, histogram
from .output import Error, Output
from .serving import serve
from .version import __version__

if TYPE_CHECKING:
    from .client import Client
    from .client_answers import Learned, Prediction
    from .client_async import AsyncClient
    from .client_errors import (
        BadRequest,
        ServerError,
        Timeout,
        TooManyRequests,
        TopsailError,
        Unauthorized,
        Unavailable,
        UnknownApp,
    )
    from .client_requests import Feedback

__all__ = [
    "AsyncClient",
    "BadRequest",
    "Client",
    "Counter",
    "Error",
    "Feedback",
    "Gauge",
    "Histogram",
    "Learned",
    "Output",
    "Prediction",
    "ServerError",
    "Timeout",
    "TooManyRequests",
    "TopsailError",
    "Unauthorized",
    "Unavailable",
    "UnknownApp",
    "__version__",
    "counter",
    "gauge",
    "histogram",
    "serve",
]

_LATER = {
    "AsyncClient": "client_async",
    "Client": "client",
    "Feedback": "client_requests",
    "Learned": "client_answers",
    "Prediction": "client_answers",
} | dict.fromkeys(
    [
        "BadRequest",
        "ServerError",
        "Timeout",
        "TooManyRequests",
        "TopsailError",
        "Unauthorized",
        "Unavailable",
        "UnknownApp",
    ],
    "client_errors",
)


def __getattr__(name: str) -> object:
    """Imports what clients need when it is asked for: model containers start sooner without HTTP and TLS."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(globals().keys() | _LATER)
