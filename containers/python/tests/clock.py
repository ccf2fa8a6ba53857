"""The clock of the clients, in a test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Clock:
    """Stands for the module `time`. Waits between two attempts pass at once
    and move it; else it stands still, or goes on by `step` seconds with each look.

    Sockets wait in real time all the same: a call has to be given so much that a slow machine does not use it up."""

    def __init__(self, now: float = 100.0) -> None:
        self.now, self.step = now, 0.0
        self.meanwhile: list[Callable[[], object]] = []  # what happens during the waits, one after the other

    def monotonic(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if seconds and self.meanwhile:
            self.meanwhile.pop(0)()


class AwaitedClock:
    """Stands for `asyncio`, of which it is all but that it sleeps by a Clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
        await asyncio.sleep(0)
