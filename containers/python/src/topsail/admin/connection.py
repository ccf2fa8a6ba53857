"""The way to the management service."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TypeVar

from .. import client_errors
from ..client_errors import ServerError
from ..client_http import Answer, Deadline, Http, Stream
from ..client_retry import repeated
from ..version import __version__
from .call import Call

T = TypeVar("T")
_BASE = "/api/v1"


class Admin:
    """Sends calls, and reads their answers. It may be used from many threads."""

    def __init__(self, url: str, tls: ssl.SSLContext | None, headers: Mapping[str, str], timeout: float) -> None:
        """`timeout` is in seconds, for calls that are given no other."""
        self._http = Http(url, tls, "a management service", "http://127.0.0.1:1338")
        self._headers = {"Accept": "application/json", "User-Agent": f"topsail-python/{__version__}", **headers}
        self._timeout = timeout

    def __str__(self) -> str:
        return str(self._http)

    def send(self, call: Call[T], timeout: float | None) -> T:
        deadline = self._deadline(timeout)
        attempts: list[None] = []

        def once() -> T:
            attempts.append(None)
            headers = {**self._headers, **call.headers}
            answer = self._http.exchange(call.method, _BASE + call.path, call.body, headers, deadline)
            if call.vanishing and answer.status == 404 and len(attempts) > 1:
                answer = Answer(204, None, b"")  # the attempt that broke off has deleted it
            if answer.status >= 300:
                raise client_errors.of_answer(answer.status, answer.body, answer.retry_after)
            return self._read(call, answer)

        return repeated(once, deadline, call.repeatable)

    def stream(self, path: str, accept: str, timeout: float | None) -> Stream:
        """Opens an answer that goes on; the time is for its beginning."""
        deadline = self._deadline(timeout)

        def once() -> Stream:
            answer = self._http.open(_BASE + path, self._headers | {"Accept": accept}, deadline)
            if isinstance(answer, Stream):
                return answer
            raise client_errors.of_answer(answer.status, answer.body, answer.retry_after)

        return repeated(once, deadline, repeatable=True)

    def close(self) -> None:
        self._http.close()

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self._timeout if timeout is None else timeout)

    def _read(self, call: Call[T], answer: Answer) -> T:
        try:
            return call.read(answer)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            beginning = answer.body[:100].decode("utf-8", "replace")
            raise ServerError(f"this is no answer of Topsail's management: {beginning!r}", answer.status) from None
