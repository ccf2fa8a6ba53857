"""The way to a server: sends calls, and reads their answers."""

from __future__ import annotations

from typing import TypeVar

from .client_call import Call
from .client_http import Deadline, Http, Stream
from .client_retry import repeated
from .client_target import Target, refusal

T = TypeVar("T")


class Channel:
    """It may be used from many threads. Timeouts are in seconds; None is the target's."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._http = Http(target.url, target.tls, target.shown)

    def __str__(self) -> str:
        return str(self._target)

    def send(self, call: Call[T], timeout: float | None) -> T:
        """It is repeated meanwhile where that does no harm."""
        deadline = self._target.deadline(timeout)
        return repeated(lambda again: self._attempt(call, deadline, again), deadline, call.repeatable)

    def send_once(self, call: Call[T], timeout: float | None) -> T:
        return self._attempt(call, self._target.deadline(timeout), False)

    def stream(self, path: str, accept: str, timeout: float | None) -> Stream:
        """Opens an answer that goes on; the time is for its beginning."""
        deadline = self._target.deadline(timeout)
        headers = {"Accept": accept}

        def once(_: bool) -> Stream:
            answer = self._http.open(self._target.base + path, headers, deadline)
            if isinstance(answer, Stream):
                return answer
            raise refusal(answer)

        return repeated(once, deadline, repeatable=True)

    def close(self) -> None:
        self._http.close()

    def _attempt(self, call: Call[T], deadline: Deadline, again: bool) -> T:
        headers = self._target.headers(call, deadline)
        answer = self._http.exchange(call.method, self._target.base + call.path, call.body, headers, deadline)
        return self._target.result(call, answer, again)
