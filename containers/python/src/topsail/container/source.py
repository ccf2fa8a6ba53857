"""Finds the model that a command line names: `module:object` or `path/to/file.py:object`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class SourceError(Exception):
    """There is no such model; the text says what was looked for."""


def enter(folder: str | None) -> None:
    """Makes a folder the working directory, and the first place where modules are looked for."""
    if folder:
        try:
            os.chdir(folder)
        except OSError as e:
            raise SourceError(f"--chdir {folder}: {e.strerror}") from None
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)


def find(target: str) -> Any:
    """Imports the module and returns the object. What the module itself raises goes through."""
    module, colon, name = target.rpartition(":")
    if not colon or not module or not name:
        raise SourceError(f"{target!r} names no model: write module:object or path/to/file.py:object")
    found: Any = _file(Path(module)) if module.endswith(".py") else _module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise SourceError(f"{module} has no {name!r}; it has {_names(found)}")
        found = getattr(found, part)
    return found


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name and (name == e.name or name.startswith(e.name + ".")):  # and not something that the module imports
            raise SourceError(f"there is no module {e.name!r} in {os.getcwd()} or on the Python path") from None
        raise


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SourceError(f"there is no file {path} in {os.getcwd()}")
    sys.path.insert(0, str(path.parent.resolve()))  # as for a script, so that its neighbours can be imported
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SourceError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _names(found: Any) -> str:
    names = [n for n in vars(found) if not n.startswith("_")] if hasattr(found, "__dict__") else []
    return ", ".join(names[:12]) or "nothing"
