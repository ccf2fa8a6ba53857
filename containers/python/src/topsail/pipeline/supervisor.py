"""The supervisor of a pipeline: starts its workers, keeps them alive, and ends them in order."""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections.abc import Mapping, Sequence

from .. import signals
from ..life import SidecarGone
from ..waker import Waker
from . import description, program
from .child import Child
from .place import Place
from .stage import PipelineError, Stage
from .worker import Post

_log = logging.getLogger("topsail")
_GRACE = 8.0  # seconds in which all workers have to end; Topsail itself kills a container after 10 s or more
_LAST_GRACE = 1.0  # the same from a second signal on
_ORDERLY = ("exit status 0", "killed by signal SIGTERM")  # the latter before it could catch it
_TICK = 0.5  # seconds at most between two looks at who has ended
_SHORT_TICK = 0.01  # the same while somebody is about to


class StageFailed(Exception):
    """A stage cannot be loaded, however often it is tried."""


class Supervisor:
    """Owns the processes of all workers. It has no connection of its own: each worker has one."""

    def __init__(self, stages: Sequence[Stage], environ: Mapping[str, str]) -> None:
        """It raises PipelineError for a CPU that is not there."""
        self._stages = stages
        self._environ = environ
        self._pipeline = description.write(stages)
        self._program = program.command()
        self._places = [Place(s, i) for s in stages for i in range(s.workers)]
        self._selector = selectors.DefaultSelector()
        self._waker = Waker()
        self._signals = 0
        self._deadline: float | None = None  # when the last worker has to be gone, once it is time to stop
        self._error: Exception | None = None
        self._told_ready = False
        _check_cpus(stages)

    def run(self) -> None:
        """Returns after SIGTERM or SIGINT, when no worker is left. It raises SidecarGone or StageFailed."""
        self._selector.register(self._waker, selectors.EVENT_READ, self._waker.read)
        with self._selector, signals.caught(self._on_signal, self._waker.descriptor):
            try:
                while self._deadline is None or any(p.child for p in self._places):
                    self._step()
            finally:
                self._kill()
        if self._error:
            raise self._error

    def _on_signal(self) -> None:
        self._signals += 1

    def _step(self) -> None:
        self._start_due()
        for key, _ in self._selector.select(self._patience()):
            key.data()
        for place in self._places:
            if child := place.empty():
                self._ended(place, child)
        if self._signals and self._deadline is None:
            self._stop(None)
        if self._deadline is not None:
            self._drain(self._deadline)
        elif not self._told_ready and all(p.ready for p in self._places):
            self._told_ready = True
            _log.info("all %d workers of %d stages are ready", len(self._places), len(self._stages))

    def _patience(self) -> float:
        now = time.monotonic()
        if any(p.child and p.child.ending for p in self._places):
            return _SHORT_TICK
        moments = [p.due for p in self._places if p.due is not None]
        return max(0.0, min([_TICK, *(m - now for m in moments)]))

    def _start_due(self) -> None:
        if self._deadline is not None:
            return
        now = time.monotonic()
        for place in self._places:
            if place.due is not None and place.due <= now:
                place.fill(self._start)
                if not place.child:
                    self._try_again(place)

    def _start(self, place: Place) -> Child:
        def environment(tether: int) -> dict[str, str]:
            post = Post(place.stage.name, place.index, self._pipeline, tether)
            return {**self._environ, "PYTHONUNBUFFERED": "1", **post.environment()}

        return Child(place.name, self._program, program.FOLDER, place.cpu, environment, self._selector)

    def _ended(self, place: Place, child: Child) -> None:
        if self._deadline is not None:
            place.due = None
            if place.why not in _ORDERLY:
                _log.warning("worker %s ended: %s", place.name, place.why)
        elif child.gone:
            self._stop(SidecarGone(child.gone))
        else:
            self._try_again(place)

    def _try_again(self, place: Place) -> None:
        """A stage whose other workers are well is not given up for one."""
        stage = place.stage
        if place.hopeless and not any(p.ready for p in self._places if p.stage is stage):
            self._stop(StageFailed(f"stage {stage.name} failed to load {place.failures} times in a row: {place.why}"))
            return
        wait = max(0.0, (place.due or 0.0) - time.monotonic())
        _log.warning("worker %s ended: %s; it starts again in %.1f s", place.name, place.why, wait)

    def _stop(self, error: Exception | None) -> None:
        self._error = error
        self._deadline = time.monotonic() + _GRACE
        for place in self._places:
            place.due = None
            if place.child and (error or not place.ready):
                self._terminate(place)

    def _drain(self, deadline: float) -> None:
        """Ends stage by stage: a stage has work as long as the one before it has passed some on."""
        if self._signals > 1 and time.monotonic() < deadline - _LAST_GRACE:
            self._deadline = deadline = time.monotonic() + _LAST_GRACE
            for place in self._places:
                self._terminate(place)
        if time.monotonic() >= deadline:
            self._kill()
            return
        for stage in self._stages:
            living = [p for p in self._places if p.stage is stage and p.child]
            for place in living:
                if not place.told:
                    self._tell(place)
            if living:
                return

    def _tell(self, place: Place) -> None:
        if place.stage is self._stages[0]:
            self._terminate(place)
        elif place.child:
            place.told = True
            place.child.finish()

    def _terminate(self, place: Place) -> None:
        if place.child:
            place.told = True
            place.child.terminate()

    def _kill(self) -> None:
        for place in self._places:
            if place.child:
                place.child.kill()


def _check_cpus(stages: Sequence[Stage]) -> None:
    asked = {cpu for stage in stages for cpu in stage.cpus}
    if asked and not hasattr(os, "sched_getaffinity"):
        _log.warning("this system does not let a process choose its CPUs: the workers run on any")
        return
    there = os.sched_getaffinity(0) if asked else set()
    for stage in stages:
        if missing := set(stage.cpus) - there:
            raise PipelineError(
                f"stage {stage.name!r}: there is no CPU {min(missing)} for this process; it may use "
                f"{', '.join(map(str, sorted(there)))}"
            )
