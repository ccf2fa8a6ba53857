"""Sends again what may be sent again, as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from .backoff import Backoff
from .client_errors import Timeout, TooManyRequests, Unavailable
from .client_http import Deadline

T = TypeVar("T")

UNREACHED = 10.0
"""How long, in seconds, a server that nothing is heard of is tried at the most: it is more likely not to run, or to be
elsewhere, than to come back."""


def repeated(once: Callable[[], T], deadline: Deadline, repeatable: bool) -> T:
    """Calls once until it answers, or there is no time, or repeating could do harm."""
    backoff = Backoff(least=0.01, most=1.0)
    unreached: float | None = None
    last: Exception | None = None
    while True:
        try:
            return once()
        except Timeout:
            if last is None or not repeatable:
                raise
            raise last from None  # there was hardly time for another try
        except (Unavailable, TooManyRequests) as e:
            last = e
            wait = max(backoff.next(), e.retry_after)
            unreached = (unreached or time.monotonic()) if e.unheard and isinstance(e, Unavailable) else None
            lost = unreached is not None and time.monotonic() + wait - unreached > UNREACHED
            if not (repeatable or e.unheard) or wait >= deadline.left() or lost:
                raise
        time.sleep(wait)
