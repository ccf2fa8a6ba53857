"""From a bundle to its model."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .failure import PermanentFailure, missing
from .folder import Folder


def load(folder: Folder) -> Any:
    """The model of a bundle, loaded, as `topsail.serve` takes it. It raises PermanentFailure, or what the model's own
    code raises."""
    runtime = folder.manifest.runtime
    if runtime == "command":
        raise PermanentFailure(
            "a bundle with the runtime 'command' is a program of its own, which Topsail starts by itself"
        )
    if runtime == "host":
        raise PermanentFailure(
            "a bundle with the runtime 'host' holds models of other bundles, and Topsail starts it by itself"
        )
    if runtime == "pmml":
        raise PermanentFailure("a bundle with the runtime 'pmml' runs in Java, which Topsail starts by itself")
    module = import_module(f".{runtime}", __package__)
    make: Callable[[Folder], Any] = module.load
    try:
        return Exemplified(make(folder), folder)
    except ModuleNotFoundError as e:
        raise missing(e) from e


class Exemplified:
    """A model that warms up with the manifest's example where it has no examples of its own. Else it is what it was."""

    def __init__(self, model: Any, folder: Folder) -> None:
        self._model = model
        self._example, self._batch = folder.example(), folder.batch()
        self.signature = folder.signature
        self.predict = getattr(model, "predict", model)
        self.__qualname__ = getattr(model, "__qualname__", type(model).__name__)  # by which messages call it

    def warmup(self) -> list[Any]:
        own = getattr(self._model, "warmup", None)
        if callable(own):
            return list(own())
        return [] if self._example is None else [self._example] * self._batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
