"""The way to a server: sends calls, and reads their answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from .answers import Prediction
from .call import Call, unread
from .events import EVENT_STREAM
from .http import Deadline, Http, Stream
from .parts import Parts
from .retry import repeated
from .target import Target, refusal

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
        return self._opened(Call("GET", path, unread, headers={"Accept": accept}, repeatable=True), timeout)

    def parts(self, call: Call[Prediction], timeout: float | None) -> Parts:
        """An answer in parts; the time is for the first, and then for each after the one before."""
        call = replace(call, headers={**call.headers, "Accept": EVENT_STREAM})
        idle = self._target.timeout if timeout is None else timeout
        return Parts(lambda: self._opened(call, timeout), str(self), idle)

    def close(self) -> None:
        self._http.close()

    def _opened(self, call: Call[Any], timeout: float | None) -> Stream:
        deadline = self._target.deadline(timeout)

        def once(_: bool) -> Stream:
            headers = self._target.headers(call, deadline)
            answer = self._http.open(call.method, self._target.base + call.path, call.body, headers, deadline)
            if isinstance(answer, Stream):
                return answer
            raise refusal(answer)

        return repeated(once, deadline, call.repeatable)

    def _attempt(self, call: Call[T], deadline: Deadline, again: bool) -> T:
        headers = self._target.headers(call, deadline)
        answer = self._http.exchange(call.method, self._target.base + call.path, call.body, headers, deadline)
        return self._target.result(call, answer, again)
