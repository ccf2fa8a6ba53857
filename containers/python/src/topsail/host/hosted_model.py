"""A model version that a host has loaded."""

from __future__ import annotations

import logging
import threading
from types import ModuleType
from typing import NamedTuple

from ..container.batch import Batch
from ..container.connection import Connection
from ..container.runner import Runner
from ..protocol.announce import Announced
from ..protocol.constants import State, Status
from ..protocol.load import Load
from ..runtime.modules import forget

HOST_ID = 0  # of the host itself, which answers nothing

_log = logging.getLogger("topsail")


class Loaded(NamedTuple):
    """A model with the modules that are its own."""

    name: str
    runner: Runner
    modules: list[ModuleType]

    def close(self) -> None:
        """Whatever the model does in its teardown, it is over."""
        try:
            self.runner.teardown()
        except BaseException:
            _log.exception("%s failed in its teardown", self.name)
        forget(self.modules)


class HostedModel:
    """It is run by the main thread and closed by the loader's. `connection` is the one that it was asked for on, where
    alone its id means something."""

    def __init__(self, id: int, asked: Load, loaded: Loaded, memory: int, connection: Connection) -> None:
        self.id, self.asked, self.memory, self.connection = id, asked, memory, connection
        self._loaded: Loaded | None = loaded
        self._code = loaded.runner.input_type.code if loaded.runner.input_type else 0
        self._length = loaded.runner.input_length
        self._using = threading.Lock()  # guards _loaded, for as long as it runs

    def announced(self) -> Announced:
        model, version = self.asked.model, self.asked.version
        return Announced(self.id, State.READY, self._code, self._length, model, version, memory=self.memory)

    def answer(self, batch: Batch) -> None:
        with self._using:
            try:
                batch.answer(self._loaded.runner if self._loaded else None)
            except SystemExit as e:  # one model must not end the others
                _log.exception("%s wants to end its process, which is not its own", name_of(self.asked))
                batch.refuse(Status.MODEL_ERROR, f"SystemExit: {e}")

    def close(self) -> None:
        """Tears the model down and lets go of it, once the batch in flight is answered."""
        with self._using:
            loaded, self._loaded = self._loaded, None
        if loaded:
            loaded.close()


def name_of(asked: Load) -> str:
    return f"{asked.model}:{asked.version}"


def gone(id: int, asked: Load | None = None, reason: str = "") -> Announced:
    """That the id is not, or no longer, in use."""
    model, version = (asked.model, asked.version) if asked else ("", "")
    return Announced(id, State.GONE, 0, 0, model, version, reason=reason)
