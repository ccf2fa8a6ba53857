"""A host: loads and serves many models as its sidecar asks, and stops in order."""

from __future__ import annotations

import sys
from pathlib import Path

from ..container.inbox import Inbox
from ..container.lifecycle import Stopped, run
from ..container.link import Link
from ..container.reporter import Reporter
from ..container.requests import Request, RequestQueue
from ..container.settings import Settings, SettingsError
from ..metrics import REGISTRY
from ..protocol.announce import Announced
from ..protocol.constants import State
from . import memory
from .bundles import Bundles
from .hosted_model import HOST_ID
from .hosted_models import HostedModels
from .loader import Loader

_TURN = 0.001  # seconds that a model which is loading may hold the others up, five times less than Python's own
_LOOK = 5.0  # seconds without a query, after which the loader is looked at


def models_below(folder: str) -> Path:
    """The folder of unpacked bundles. It raises SettingsError."""
    if not folder:
        raise SettingsError("TOPSAIL_MODELS_DIR is not set: Topsail sets it for hosts that it starts")
    path = Path(folder)
    if not path.is_dir():
        raise SettingsError(f"the folder of models {folder!r} is not there")
    return path


class Host:
    """Models run on the thread that calls run, one batch at a time, and load on another."""

    def __init__(self, settings: Settings, models: Path) -> None:
        self._settings = settings
        self._models = HostedModels()
        requests = RequestQueue()
        self._inbox = Inbox(requests)
        self._loader = Loader(Bundles(models), self._models, requests, self._announce)
        self._link = Link(settings, self._announced(), self._inbox, Reporter(REGISTRY))
        self._stopping = False
        self._abandoned = False

    def run(self) -> None:
        """Returns after SIGTERM or SIGINT. It raises SidecarGone or LoaderStuck."""
        run(self._link, self._on_signal, self._live)

    def _live(self) -> None:
        sys.setswitchinterval(_TURN)
        self._loader.start()
        while not (self._stopping or self._inbox.closed):
            if batch := self._link.wait(_LOOK):
                self._models.answer(batch)
            else:
                self._loader.check()
        self._link.drain()
        for batch in self._inbox.rest():
            self._models.answer(batch)
        self._loader.stop()
        self._models.close_all()

    def _announce(self, request: Request, entry: Announced | None) -> None:
        self._link.announce(self._announced(), *([entry] if entry else []), on=request.connection)

    def _announced(self) -> Announced:
        s = self._settings
        return Announced(HOST_ID, State.READY, 0, 0, s.model, s.version, memory=memory.resident())

    def _on_signal(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._inbox.wake()
        elif not self._abandoned:  # once only: the way out must not be cut short
            self._abandoned = True
            raise Stopped
