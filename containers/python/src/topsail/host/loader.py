"""The thread that loads models and drops them, one at a time, while the main thread runs those that are there."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable

from ..container.requests import Disconnected, Request, RequestQueue, Unload
from ..protocol.announce import Announced
from ..protocol.load import Load
from . import memory
from .bundles import Bundles, is_clear, why_not
from .hosted_model import HOST_ID, HostedModel, Loaded, gone, name_of
from .hosted_models import HostedModels

_log = logging.getLogger("topsail")
_JOIN = 1.0  # seconds that a model has to come to an end of its loading when the host is stopped
_HANGS = 60.0  # seconds after which loading a model that no connection waits for is given up
_WORTH = 1 << 20  # bytes of growth, from which on it matters whose they are


class LoaderStuck(Exception):
    """The thread that loads is stuck in a model."""


class Loader:
    """`announce` is told what there is to say in answer to a request: of a version, or of the host alone."""

    def __init__(
        self,
        bundles: Bundles,
        models: HostedModels,
        requests: RequestQueue,
        announce: Callable[[Request, Announced | None], None],
    ) -> None:
        self._bundles, self._models, self._requests, self._announce = bundles, models, requests, announce
        self._garbage = memory.Garbage()
        self._ids = itertools.count(HOST_ID + 1)
        self._stopping = False
        self._at: tuple[Request, float] | None = None  # what it is at, and since when, in monotonic seconds
        self._thread = threading.Thread(target=self._run, name="topsail-loader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begins nothing more, and waits a moment for what it is at."""
        self._stopping = True
        self._requests.close()
        self._thread.join(_JOIN)

    def check(self) -> None:
        """It raises LoaderStuck where a model has been loading for too long and the sidecar has turned away. A thread
        cannot be ended from outside, so nothing else would ever be loaded."""
        if at := self._at:
            request, began = at
            took = time.monotonic() - began
            if request.connection.broken and took > _HANGS:
                name = name_of(request.asked) if isinstance(request.asked, Load) else "what is unloaded"
                raise LoaderStuck(f"{name} has hung for {took:.0f} s, and holds up all that is to be loaded")

    def _run(self) -> None:
        while (request := self._requests.take()) and not self._stopping:
            self._at = request, time.monotonic()
            try:
                self._follow(request)
            except Exception:  # a request that fails must not be the last one
                _log.exception("a request of the sidecar failed")
            self._at = None

    def _follow(self, request: Request) -> None:
        if isinstance(request.asked, Disconnected):
            self._garbage.add(sum(hosted.memory for hosted in self._models.close_all(request.connection)))
            self._announce(request, None)
        elif request.connection.broken:
            pass  # no connection waits for an answer, and what is loaded is dropped next
        elif isinstance(request.asked, Unload):
            self._unload(request, request.asked.id)
        else:
            self._announce(request, self._loaded(request, request.asked))

    def _loaded(self, request: Request, asked: Load) -> Announced:
        if there := self._models.of(asked, request.connection):
            return there.announced()
        began, before = time.monotonic(), memory.resident()
        try:
            loaded, takes = self._measured(asked)
        except BaseException as e:  # the model's own code may raise anything
            reason = why_not(e)
            _log.error("%s cannot be loaded: %s", name_of(asked), reason, exc_info=not is_clear(e))
        else:
            hosted = HostedModel(next(self._ids), asked, loaded, takes, request.connection)
            self._models.add(hosted)
            took = time.monotonic() - began
            _log.info("%s is loaded after %.2f s and takes %.1f MB", name_of(asked), took, takes / 1e6)
            return hosted.announced()
        self._garbage.add(memory.resident() - before)
        return gone(next(self._ids), asked, reason)

    def _measured(self, asked: Load) -> tuple[Loaded, int]:
        """The model, and the bytes that it takes: at least those of its files, because small ones are made of memory
        that the process has already. The libraries that it was the first to need are not its own, but everyone's: it
        is loaded again, to be measured without them."""
        loaded, grown, libraries = self._loaded_once(asked)
        if libraries and grown > _WORTH:
            loaded.close()
            del loaded
            self._garbage.add(grown)
            loaded, grown, _ = self._loaded_once(asked)
        return loaded, max(grown, memory.size_of(self._bundles.place(asked)))

    def _loaded_once(self, asked: Load) -> tuple[Loaded, int, bool]:
        """The model, the bytes by which the process has grown, and whether it has imported what others may, too."""
        before, modules = memory.resident(), len(sys.modules)
        loaded = self._bundles.load(asked)
        memory.give_back()
        return loaded, memory.resident() - before, len(sys.modules) > modules

    def _unload(self, request: Request, id: int) -> None:
        if id == HOST_ID:
            _log.warning("the sidecar asked to unload the host itself")
            return
        hosted = self._models.close(id, request.connection)
        self._garbage.add(hosted.memory if hosted else 0)
        self._announce(request, gone(id, hosted.asked if hosted else None))
