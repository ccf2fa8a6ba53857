"""Sends again what may be sent again, as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..backoff import Backoff
from .deadline import Deadline
from .errors import Timeout, TooManyRequests, Unavailable

T = TypeVar("T")

UNREACHED = 10.0
"""How long, in seconds, a server that nothing is heard of is tried at the most: it is more likely not to run, or to be
elsewhere, than to come back."""

_ATTEMPT = 0.01  # seconds without which another would only hide by its own end why the last one failed


async def repeated(
    once: Callable[[bool], Awaitable[T]],
    deadline: Deadline,
    repeatable: bool,
    sleep: Callable[[float], Awaitable[None]],
) -> T:
    """Calls once, with whether it was called before, until it answers or is not to be called again: there is no time,
    repeating could do harm, or it would not help."""
    backoff, last, since = Backoff(least=0.01, most=1.0), None, None
    while True:
        try:
            return await once(last is not None)
        except Timeout:
            if last is not None and repeatable:
                raise last from None  # there was hardly time for another try
            raise
        except (Unavailable, TooManyRequests) as e:
            last = e
        wait = max(backoff.next(), last.retry_after)
        unreached = last.unheard and isinstance(last, Unavailable)
        since = (since or time.monotonic()) if unreached else None
        lost = since is not None and time.monotonic() + wait - since > UNREACHED
        if not (repeatable or last.unheard) or wait + _ATTEMPT >= deadline.left() or lost:
            raise last
        await sleep(wait)
