"""Sends again what may be sent again, as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..backoff import Backoff
from .deadline import Deadline
from .errors import Timeout, TooManyRequests, TopsailError, Unavailable

T = TypeVar("T")

UNREACHED = 10.0
"""How long, in seconds, a server that nothing is heard of is tried at the most: it is more likely not to run, or to be
elsewhere, than to come back."""

_ATTEMPT = 0.01  # seconds without which another would only hide by its own end why the last one failed


class Retries:
    """Decides after each failed attempt of one call whether there is another."""

    def __init__(self, deadline: Deadline, repeatable: bool) -> None:
        self._deadline, self._repeatable = deadline, repeatable
        self._backoff = Backoff(least=0.01, most=1.0)
        self._unreached: float | None = None
        self._last: Exception | None = None

    def wait(self, error: TopsailError) -> float:
        """The seconds until the next attempt. It raises an error where there is none: there is no time, repeating could
        do harm, or it would not help."""
        if isinstance(error, Timeout) and self._last is not None and self._repeatable:
            raise self._last from None  # there was hardly time for another try
        if not isinstance(error, (Unavailable, TooManyRequests)):
            raise error
        self._last = error
        wait = max(self._backoff.next(), error.retry_after)
        unreached = error.unheard and isinstance(error, Unavailable)
        self._unreached = (self._unreached or time.monotonic()) if unreached else None
        lost = self._unreached is not None and time.monotonic() + wait - self._unreached > UNREACHED
        if not (self._repeatable or error.unheard) or wait + _ATTEMPT >= self._deadline.left() or lost:
            raise error
        return wait


async def repeated(
    once: Callable[[bool], Awaitable[T]],
    deadline: Deadline,
    repeatable: bool,
    sleep: Callable[[float], Awaitable[None]],
) -> T:
    """Calls once, with whether it was called before, until it answers or is not to be called again."""
    retries: Retries | None = None
    while True:
        try:
            return await once(retries is not None)
        except TopsailError as e:
            retries = retries or Retries(deadline, repeatable)
            wait = retries.wait(e)
        await sleep(wait)
