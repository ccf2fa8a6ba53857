"""Clients: they ask apps, give feedback, and manage what there is.

`sync` is the client for threads, `aio` the one for event loops. Both make the same calls (`requests`, and the resources
in `admin`), send them over a channel that repeats what may be repeated, and read the same answers. All of this is
written once, as coroutines. Only the connections differ: those of `blocking` wait within the call, so that what is
above them runs through without an event loop, and those of `event_loop` let others run meanwhile.
"""

from .aio import AsyncClient
from .answers import Learned, Prediction
from .errors import (
    AnswerCut,
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
from .parts import AsyncParts, Parts
from .requests import Feedback
from .sync import Client

__all__ = [
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
]
