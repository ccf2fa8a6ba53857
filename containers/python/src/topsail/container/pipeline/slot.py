"""The slot of one worker, which is filled again when its process ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...backoff import Backoff
from .child import Child
from .stage import Stage

_TRIES = 3  # to load, one behind the other, before it is hopeless


class WorkerSlot:
    """At most one process at a time. `due` is when the next one is to be started, in monotonic seconds."""

    def __init__(self, stage: Stage, index: int) -> None:
        self.stage = stage
        self.index = index
        self.name = f"{stage.name}/{index}"
        self.cpus = stage.cpus_of(index)
        self.child: Child | None = None
        self.due: float | None = 0.0
        self.told = False  # to end
        self.why = ""  # the last process ended
        self.failures = 0  # to load, in a row
        self._backoff = Backoff()

    @property
    def ready(self) -> bool:
        return self.child is not None and self.child.ready

    @property
    def hopeless(self) -> bool:
        return self.failures >= _TRIES

    def fill(self, start: Callable[[WorkerSlot], Child]) -> None:
        """Starts a process. One that cannot be started is as one that has ended at once."""
        self.due = None
        try:
            self.child = start(self)
        except OSError as e:
            self._again(f"it cannot be started: {e}", 0.0)

    def empty(self) -> Child | None:
        """The process that was here, if it has ended."""
        child = self.child
        if child is None or (how := child.ended()) is None:
            return None
        self.child = None
        if child.ready:
            self.failures = 0
        elif how == "exit status 0" and not (child.failed or self.told):
            how = "its program ended and did not serve it"
        if child.failed:
            how += f" ({child.failed})"
        self._again(how, time.monotonic() - child.began, child.ready)
        return child

    def _again(self, why: str, lived: float, ready: bool = False) -> None:
        self.why = why
        self.failures += not ready
        self._backoff.lived(lived)
        self.due = time.monotonic() + self._backoff.next()
