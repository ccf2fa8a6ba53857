"""What a client raises. A default output is none of these: it is an answer."""

from __future__ import annotations

import json
from typing import Any


class TopsailError(Exception):
    """Anything that keeps a client from an answer. `status` is HTTP's, or None if no server answered.

    `problem` is all that the management service said of it (RFC 9457), with a word for programs in `code`; None of a
    gateway.
    """

    unheard = False  # nothing has come of the request, so it may be sent again whatever it asks
    retry_after = 0.0  # seconds that the server asked to wait
    problem: dict[str, Any] | None = None

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def code(self) -> str:
        """The management service's word for the error, as not_found or in_use; empty if there is none."""
        return str((self.problem or {}).get("code", ""))


class BadRequest(TopsailError):
    """The app or the management service does not take this; the text says what to change."""


class NotFound(TopsailError):
    """There is nothing by this name."""


class UnknownApp(NotFound):
    """No app of this name is registered."""


class Conflict(TopsailError):
    """What there is stands against it: the name is taken, the object is in use, or another client has changed it since
    it was read. Read it again, and decide anew."""


class Unauthorized(TopsailError):
    """A key is wanted, or another one."""


class Permission(Unauthorized):
    """The key may not do this."""


class TooManyRequests(TopsailError):
    """This client asks more often than it may."""

    unheard = True


class Unavailable(TopsailError):
    """No server could be reached, or it cannot serve now. It has been tried again as long as there was time."""


class Timeout(TopsailError):
    """There was no answer within the caller's time. The server may have heard the request all the same."""


class AnswerCut(TopsailError):
    """An answer in parts ended before its end; `cause` says why. The parts that came are the beginning of an answer."""

    cause = ""


class ServerError(TopsailError):
    """The server failed, or what is there is not Topsail, or none that can be trusted."""


_OF_STATUS: dict[int, type[TopsailError]] = {
    401: Unauthorized,
    403: Permission,
    408: Timeout,
    409: Conflict,
    412: Conflict,
    428: Conflict,
    429: TooManyRequests,
    502: Unavailable,  # 502 and 504 come from proxies before the gateway
    503: Unavailable,
    504: Unavailable,
}


def of_answer(status: int, body: bytes, retry_after: str | None = None) -> TopsailError:
    """The error that a server's answer stands for."""
    answer = _object(body)
    problem = answer if "title" in answer or "detail" in answer else None
    other = BadRequest if 400 <= status < 500 else ServerError
    kind = _OF_STATUS.get(status, other)
    if status == 404 and problem is not None:
        kind = NotFound
    if status == 404 and answer.get("error") == "Unknown app":
        kind = UnknownApp
    error = kind(_said(answer, body, status), status)
    error.problem = problem
    if retry_after and retry_after.isascii() and retry_after.isdigit():  # a proxy may give a date: then we decide
        error.retry_after = float(retry_after)
    return error


def of_cut(event: Any) -> AnswerCut:
    """The error that the last event of an answer in parts stands for."""
    said = event if isinstance(event, dict) else {}
    cause = str(said.get("cause") or "the gateway did not say why")
    error = AnswerCut(f"{said.get('error') or 'Answer cut'}: {cause}", 200)
    error.cause = cause
    return error


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _said(answer: dict[str, Any], body: bytes, status: int) -> str:
    """The management service's detail, or the gateway's name for the error and its cause; else the beginning of
    whatever came."""
    if "error" in answer and "cause" in answer:
        return f"{answer['error']}: {answer['cause']}"
    if "title" in answer or "detail" in answer:
        return str(answer.get("detail") or answer["title"])
    beginning = body[:200].decode("utf-8", "replace").strip()
    return f"{beginning or 'there was an empty answer'} (status {status})"
