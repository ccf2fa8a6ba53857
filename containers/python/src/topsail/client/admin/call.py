"""Calls to the management service."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from ..call import Call
from ..errors import BadRequest
from ..http import Answer
from .dry_run import gone_or_dry_run
from .record import DryRun

T = TypeVar("T")


def get(path: str, read: Callable[[Answer], T], **query: Any) -> Call[T]:
    return Call("GET", path + asked(query), read, repeatable=True)


def create(path: str, read: Callable[[Answer], T], body: Any, **query: Any) -> Call[T]:
    """A POST that may be sent again: what is there and equal is no conflict."""
    return replace(act(path, read, body, **query), repeatable=True)


def act(path: str, read: Callable[[Answer], T], body: Any = None, etag: str | None = None, **query: Any) -> Call[T]:
    """A POST that is sent once. None has no body."""
    data = None if body is None else encoded(body)
    return Call("POST", path + asked(query), read, data, _described(body, "application/json", etag))


def change(
    method: str, path: str, read: Callable[[Answer], T], body: Any = None, etag: str | None = None, **query: Any
) -> Call[T]:
    """PUT, PATCH, or DELETE of a part. With an ETag it happens only if the object is still that; heard twice it would
    find its own change there, so it is sent once. Without one, what it says is so afterwards however often it is
    heard."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = None if body is None else encoded(body)
    repeatable = etag in (None, "*")
    return Call(method, path + asked(query), read, data, _described(body, kind, etag), repeatable)


def delete(path: str, etag: str | None = None, **query: Any) -> Call[DryRun | None]:
    sent = change("DELETE", path, gone_or_dry_run, None, etag, **query)
    return replace(sent, vanishing=True)


def path(*parts: str) -> str:
    """A path of names, whatever is in them."""
    if not all(parts):
        raise BadRequest("a name is empty")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def asked(query: Mapping[str, Any]) -> str:
    """What was given, as the query of a URL."""
    given = {k: "true" if v is True else v for k, v in query.items() if v is not None and v is not False and v != ""}
    return "?" + urlencode(given) if given else ""


def encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as e:
        raise BadRequest(f"this cannot be sent: {e}") from None


def _described(body: Any, kind: str, etag: str | None) -> dict[str, str]:
    headers = {} if body is None else {"Content-Type": kind}
    return headers if etag is None else headers | {"If-Match": etag}


def nothing(_: Answer) -> None:
    """Reads an answer that says no more than its status."""
