"""A container: loads a model, serves it to a sidecar, and stops in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from . import input_type
from .health import Health
from .inbox import Inbox, Job
from .learning import Learning
from .life import Stopped, live
from .link import Link
from .loading import warm_up
from .metrics import REGISTRY
from .reporter import Reporter
from .runner import Runner
from .settings import Settings
from .wire.announce import Announced
from .wire.constants import State

_log = logging.getLogger("topsail")
_MODEL_ID = 1  # a container announces one model


class Container:
    """Serves the model that `load` makes and loads, which happens on the thread that calls run, as all that the model
    does: many libraries want one thread, and the main one at that. `on_ready` is called when the model is loaded."""

    def __init__(
        self, load: Callable[[], Runner], settings: Settings, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        self._load_model = load
        self._settings = settings
        self._on_ready = on_ready
        self._inbox = Inbox()
        self._announced = _announced(settings)
        self._link = Link(settings, self._announced, self._inbox, Reporter(REGISTRY))
        self._loading = True
        self._stopping = False
        self._linger = 0.0
        self._abandoned = False

    def run(self) -> None:
        """Returns after SIGTERM or SIGINT. It raises SidecarGone, or what loading or teardown raised."""
        live(self._link, self._on_signal, self._live)

    def stop(self, linger: float = 0.0) -> None:
        """What SIGTERM does, for a container that does not run on the main thread. It may be called from any thread.
        With `linger` it serves on until no batch has come for so many seconds."""
        self._linger = linger
        self._stopping = True
        self._inbox.wake()

    def _live(self) -> None:
        runner = self._load()
        self._serve(runner)
        runner.model.teardown()

    def _load(self) -> Runner:
        began = time.monotonic()
        s = self._settings
        runner = self._load_model()
        warm_up(runner)
        self._loading = False
        _log.info("%s:%s is ready after %.1f s", s.model, s.version, time.monotonic() - began)
        code = runner.input_type.code if runner.input_type else 0
        self._announced = replace(self._announced, input_type=code, input_length=runner.input_length)
        self._announce(State.READY)
        self._on_ready()
        return runner

    def _announce(self, state: State) -> None:
        self._announced = replace(self._announced, state=state)
        self._link.announce(self._announced)

    def _serve(self, runner: Runner) -> None:
        health = Health(runner.model, self._settings.health_every)
        learning = Learning(runner, self._inbox.feedback, REGISTRY)
        while not (self._stopping or self._inbox.closed):
            if job := self._link.wait(_sooner(health.due_in(), learning.due_in())):
                _answer(runner, job)
            elif self._inbox.idle:  # batches go first
                learning.step()
            if health.changed():
                self._announce(State.READY if health.good else State.LOADING)
        self._linger_on(runner)
        self._link.drain()
        for job in self._inbox.rest():
            _answer(runner, job)

    def _linger_on(self, runner: Runner) -> None:
        until = time.monotonic() + self._linger
        while self._link.connected and not self._inbox.closed and (left := until - time.monotonic()) > 0:
            if job := self._link.wait(left):
                _answer(runner, job)
                until = time.monotonic() + self._linger

    def _on_signal(self) -> None:
        if not (self._loading or self._stopping):
            self.stop()
        elif not self._abandoned:  # once only: the way out must not be cut short
            self._abandoned = True
            raise Stopped


def _sooner(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def _answer(runner: Runner, job: Job) -> None:
    job.answer(runner if job.batch.model == _MODEL_ID else None)


def _announced(settings: Settings) -> Announced:
    """What is known before the model is loaded; an input type that only the model knows is `any` until then."""
    code = input_type.parse(settings.input_type).code if settings.input_type else 0
    length, pipeline = settings.input_length or 0, settings.pipeline.encode()
    return Announced(_MODEL_ID, State.LOADING, code, length, settings.model, settings.version, settings.stage, pipeline)
