"""What a client raises. A default output is none of these: it is an answer."""

from __future__ import annotations

import json
from typing import Any


class TopsailError(Exception):
    """Anything that keeps a client from an answer. `status` is HTTP's, or None if no gateway answered."""

    unheard = False  # nothing has come of the request, so it may be sent again whatever it asks
    retry_after = 0.0  # seconds that the gateway asked to wait

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class BadRequest(TopsailError):
    """The app does not take this; the text says what to change."""


class UnknownApp(TopsailError):
    """No app of this name is registered."""


class Unauthorized(TopsailError):
    """The gateway wants a key, or another one."""


class TooManyRequests(TopsailError):
    """This client asks more often than it may."""

    unheard = True


class Unavailable(TopsailError):
    """No gateway could be reached, or it cannot serve now. It has been tried again as long as there was time."""


class Timeout(TopsailError):
    """There was no answer within the caller's time. The gateway may have heard the request all the same."""


class ServerError(TopsailError):
    """The gateway failed, or what is there is no Topsail gateway, or none that can be trusted."""


_OF_STATUS: dict[int, type[TopsailError]] = {
    401: Unauthorized,
    403: Unauthorized,
    408: Timeout,
    429: TooManyRequests,
    502: Unavailable,  # 502 and 504 come from proxies before the gateway
    503: Unavailable,
    504: Unavailable,
}


def of_answer(status: int, body: bytes, retry_after: str | None = None) -> TopsailError:
    """The error that a gateway's answer stands for."""
    name, cause = _explained(body)
    other = BadRequest if 400 <= status < 500 else ServerError
    kind = UnknownApp if status == 404 and name == "Unknown app" else _OF_STATUS.get(status, other)
    error = kind(f"{name}: {cause}" if name else f"{cause} (status {status})", status)
    if retry_after and retry_after.isascii() and retry_after.isdigit():  # a proxy may give a date: then we decide
        error.retry_after = float(retry_after)
    return error


def _explained(body: bytes) -> tuple[str, str]:
    """The gateway's name for the error and its cause; without a name, the beginning of whatever came."""
    try:
        answer: Any = json.loads(body)
        return str(answer["error"]), str(answer["cause"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return "", body[:200].decode("utf-8", "replace").strip() or "there was an empty answer"
