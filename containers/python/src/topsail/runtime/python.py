"""A Python function: pickled by cloudpickle, or named in source that is in the bundle."""

from __future__ import annotations

from typing import Any

from ..container import source
from ..container.chat import ChatModel
from ..container.source import SourceError
from . import pickled
from .failure import PermanentFailure
from .folder import Folder


def load(folder: Folder) -> Any:
    """The entry is a file .pkl, or module:object with the module in the bundle. With the option `chat` = messages it is
    one for topsail.serve_chat. With the option `model` its method load is given the path of that file or folder."""
    entry = folder.manifest.entry
    model = _named(entry) if ":" in entry else pickled.load(folder.entry(".pkl"))
    model = model() if isinstance(model, type) else model
    if name := folder.option("model", ""):
        _load(model, folder, name)
    if not callable(getattr(model, "predict", model)):
        kind = type(model).__name__
        raise PermanentFailure(
            f"the entry {entry!r} is of type {kind}: it must be a function, or have a predict method"
        )
    return ChatModel(model) if folder.option("chat", "", ("", "messages")) else model


def _load(model: Any, folder: Folder, name: str) -> None:
    """It raises PermanentFailure where there is nothing to load, or nothing that loads it."""
    path = (folder.path / name).resolve()
    if not path.exists() or not path.is_relative_to(folder.path.resolve()):
        raise PermanentFailure(f"the option model = {name!r} is no file or folder of the bundle")
    if not callable(getattr(model, "load", None)):
        kind = type(model).__name__
        raise PermanentFailure(f"the option model is for a class with a method load, which {kind} has not")
    model.load(str(path))


def _named(entry: str) -> Any:
    try:
        return source.find(entry)
    except SourceError as e:
        raise PermanentFailure(f"the entry {entry!r} cannot be found: {e}") from None
