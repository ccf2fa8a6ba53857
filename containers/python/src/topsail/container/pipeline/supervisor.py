"""The supervisor of a pipeline: starts its workers, keeps them alive, and ends them in order."""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections.abc import Mapping, Sequence

from .. import signals
from ..lifecycle import SidecarGone
from ..wakeup import Wakeup
from . import description, program
from .child import Child
from .slot import WorkerSlot
from .stage import PipelineError, Stage
from .worker import Assignment

_log = logging.getLogger("topsail")
_GRACE = 8.0  # seconds in which all workers have to end; Topsail itself kills a container after 10 s or more
_LAST_GRACE = 1.0  # the same from a second signal on
_ORDERLY = ("exit status 0", "killed by signal SIGTERM")  # the latter before it could catch it
_TICK = 0.5  # seconds at most between two looks at who has ended
_SHORT_TICK = 0.01  # the same while a child is about to


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
        self._slots = [WorkerSlot(s, i) for s in stages for i in range(s.workers)]
        self._selector = selectors.DefaultSelector()
        self._wakeup = Wakeup()
        self._signals = 0
        self._deadline: float | None = None  # when the last worker has to be gone, once it is time to stop
        self._error: Exception | None = None
        self._told_ready = False
        _check_cpus(stages)

    def run(self) -> None:
        """Returns after SIGTERM or SIGINT, when no worker is left. It raises SidecarGone or StageFailed."""
        self._selector.register(self._wakeup, selectors.EVENT_READ, self._wakeup.read)
        with self._selector, signals.caught(self._on_signal, self._wakeup.descriptor):
            try:
                while self._deadline is None or any(p.child for p in self._slots):
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
        for slot in self._slots:
            if child := slot.empty():
                self._ended(slot, child)
        if self._signals and self._deadline is None:
            self._stop(None)
        if self._deadline is not None:
            self._drain(self._deadline)
        elif not self._told_ready and all(p.ready for p in self._slots):
            self._told_ready = True
            _log.info("all %d workers of %d stages are ready", len(self._slots), len(self._stages))

    def _patience(self) -> float:
        now = time.monotonic()
        if any(p.child and p.child.ending for p in self._slots):
            return _SHORT_TICK
        moments = [p.due for p in self._slots if p.due is not None]
        return max(0.0, min([_TICK, *(m - now for m in moments)]))

    def _start_due(self) -> None:
        if self._deadline is not None:
            return
        now = time.monotonic()
        for slot in self._slots:
            if slot.due is not None and slot.due <= now:
                slot.fill(self._start)
                if not slot.child:
                    self._try_again(slot)

    def _start(self, slot: WorkerSlot) -> Child:
        def environment(control: int) -> dict[str, str]:
            assignment = Assignment(slot.stage.name, slot.index, self._pipeline, control)
            return {**self._environ, "PYTHONUNBUFFERED": "1", **assignment.environment()}

        return Child(slot.name, self._program, program.FOLDER, slot.cpus, environment, self._selector)

    def _ended(self, slot: WorkerSlot, child: Child) -> None:
        if self._deadline is not None:
            slot.due = None
            if slot.why not in _ORDERLY:
                _log.warning("worker %s ended: %s", slot.name, slot.why)
        elif child.gone:
            self._stop(SidecarGone(child.gone))
        else:
            self._try_again(slot)

    def _try_again(self, slot: WorkerSlot) -> None:
        """A stage whose other workers are well is not given up for one."""
        stage = slot.stage
        if slot.hopeless and not any(p.ready for p in self._slots if p.stage is stage):
            self._stop(StageFailed(f"stage {stage.name} failed to load {slot.failures} times in a row: {slot.why}"))
            return
        wait = max(0.0, (slot.due or 0.0) - time.monotonic())
        _log.warning("worker %s ended: %s; it starts again in %.1f s", slot.name, slot.why, wait)

    def _stop(self, error: Exception | None) -> None:
        self._error = error
        self._deadline = time.monotonic() + _GRACE
        for slot in self._slots:
            slot.due = None
            if slot.child and (error or not slot.ready):
                self._terminate(slot)

    def _drain(self, deadline: float) -> None:
        """Ends stage by stage: a stage has work as long as the one before it has passed some on."""
        if self._signals > 1 and time.monotonic() < deadline - _LAST_GRACE:
            self._deadline = deadline = time.monotonic() + _LAST_GRACE
            for slot in self._slots:
                self._terminate(slot)
        if time.monotonic() >= deadline:
            self._kill()
            return
        for stage in self._stages:
            living = [p for p in self._slots if p.stage is stage and p.child]
            for slot in living:
                if not slot.told:
                    self._tell(slot)
            if living:
                return

    def _tell(self, slot: WorkerSlot) -> None:
        if slot.stage is self._stages[0]:
            self._terminate(slot)
        elif slot.child:
            slot.told = True
            slot.child.finish()

    def _terminate(self, slot: WorkerSlot) -> None:
        if slot.child:
            slot.told = True
            slot.child.terminate()

    def _kill(self) -> None:
        for slot in self._slots:
            if slot.child:
                slot.child.kill()


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
