"""A container: loads a model, serves it to a sidecar, and stops in order."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..metrics import REGISTRY
from ..protocol.announce import Announced
from ..protocol.constants import State
from . import input_type
from .batch import Batch
from .health import Health
from .inbox import Inbox
from .learning import Learning
from .lifecycle import Stopped, run
from .link import Link
from .loading import warm_up
from .reporter import Reporter
from .runner import Runner
from .settings import Settings

if TYPE_CHECKING:
    from .concurrent.calls import Calls

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
        self._fatal: BaseException | None = None  # what the model raised on a thread of its own, to end the process

    def run(self) -> None:
        """Returns after SIGTERM or SIGINT. It raises SidecarGone, or what loading or teardown raised."""
        run(self._link, self._on_signal, self._live)

    def stop(self, linger: float = 0.0) -> None:
        """What SIGTERM does, for a container that does not run on the main thread. It may be called from any thread.
        With `linger` it serves on until no batch has come for so many seconds."""
        self._linger = linger
        self._stopping = True
        self._inbox.wake()

    def _live(self) -> None:
        runner = self._load()
        self._serve(runner)
        runner.teardown()
        if self._fatal:
            raise self._fatal

    def _load(self) -> Runner:
        began = time.monotonic()
        s = self._settings
        runner = self._load_model()
        warm_up(runner)
        self._loading = False
        _log.info("%s:%s is ready after %.1f s", s.model, s.version, time.monotonic() - began)
        code = runner.input_type.code if runner.input_type else 0
        self._announced = replace(
            self._announced, input_type=code, input_length=runner.input_length, concurrency=runner.concurrency
        )
        if runner.concurrency:
            self._inbox.calls = self._calls(runner)
        self._announce(State.READY)
        self._on_ready()
        return runner

    def _calls(self, runner: Runner) -> Calls:
        from .concurrent.calls import Calls  # models that take batches have no use for it
        from .concurrent.runner import ConcurrentRunner

        assert isinstance(runner, ConcurrentRunner)
        return Calls(runner, _MODEL_ID, self._inbox.wake, self._on_fatal)

    def _on_fatal(self, e: BaseException) -> None:
        self._fatal = e
        self.stop()

    def _announce(self, state: State) -> None:
        self._announced = replace(self._announced, state=state)
        self._link.announce(self._announced)

    def _serve(self, runner: Runner) -> None:
        health = Health(runner.model, self._settings.health_every)
        learning = Learning(runner, self._inbox.feedback, REGISTRY)
        while not (self._stopping or self._inbox.closed):
            if batch := self._link.wait(_sooner(health.due_in(), learning.due_in())):
                _answer(runner, batch)
                batch = None  # its memory can be used for the next one
            elif self._inbox.idle:  # batches go first
                learning.step()
            if health.changed():
                self._announce(State.READY if health.good else State.LOADING)
        self._linger_on(runner)
        self._link.drain()
        for batch in self._inbox.rest():
            _answer(runner, batch)
        if self._inbox.calls and not self._fatal:
            self._finish(self._inbox.calls)

    def _finish(self, calls: Calls) -> None:
        """Waits for the queries that run. The sidecar may cancel them meanwhile, or go."""
        calls.watch()
        while not calls.idle:
            self._link.wait(None)

    def _linger_on(self, runner: Runner) -> None:
        until = time.monotonic() + self._linger
        while self._link.connected and not self._inbox.closed and (left := until - time.monotonic()) > 0:
            if batch := self._link.wait(left):
                _answer(runner, batch)
                until = time.monotonic() + self._linger

    def _on_signal(self) -> None:
        if not (self._loading or self._stopping):
            self.stop()
        elif not self._abandoned:  # once only: the way out must not be cut short
            self._abandoned = True
            raise Stopped


def _sooner(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def _answer(runner: Runner, batch: Batch) -> None:
    batch.answer(runner if batch.predict.model == _MODEL_ID else None)


def _announced(settings: Settings) -> Announced:
    """What is known before the model is loaded; an input type that only the model knows is `any` until then."""
    code = input_type.parse(settings.input_type).code if settings.input_type else 0
    length, pipeline = settings.input_length or 0, settings.pipeline.encode()
    return Announced(_MODEL_ID, State.LOADING, code, length, settings.model, settings.version, settings.stage, pipeline)
