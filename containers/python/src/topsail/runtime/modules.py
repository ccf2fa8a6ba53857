"""Modules of bundles: many of them may have a `model.py`, and each is to find its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getmodulename
from pathlib import Path
from types import ModuleType


@contextmanager
def entered(folder: Path, kept: frozenset[str]) -> Iterator[list[ModuleType]]:
    """Inside, the folder is the working directory and the first place where modules are looked for. What was imported
    under the names of its modules is set aside meanwhile, but for those that are `kept`: a container of its own would
    have imported them before as well. Afterwards all is as it was, and the modules that came from the folder belong to
    the model alone; they are in the list then."""
    own: list[ModuleType] = []
    home, path, names = os.getcwd(), list(sys.path), _names(folder)
    os.chdir(folder)
    aside = _set_aside(names - kept)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield own
    finally:
        sys.path[:] = [place for place in sys.path if place in path or not _is_in(place, folder)]
        for name in set(sys.modules) - before:
            if _came_from(sys.modules.get(name), folder):
                own.append(sys.modules.pop(name))
        sys.modules.update(aside)
        for place in [place for place in list(sys.path_importer_cache) if _is_in(place, folder)]:
            del sys.path_importer_cache[place]
        os.chdir(home)


def forget(own: list[ModuleType]) -> None:
    """Empties modules that are no longer used. A function holds its module and the module the function, so what they
    refer to, weights for instance, would otherwise stay until the garbage collector finds the cycle."""
    for module in own:
        vars(module).clear()


def _names(folder: Path) -> set[str]:
    """The modules and packages of the folder. A folder in it without an __init__ is a package as well, but gives way to
    what is installed; and what is only data may be called anything."""
    own = [path for path in folder.iterdir() if path.is_file() or any(path.glob("__init__.*"))]
    return {path.name if path.is_dir() else getmodulename(path.name) or "" for path in own}


def _set_aside(names: set[str]) -> dict[str, ModuleType]:
    aside = {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] in names}
    for name in aside:
        del sys.modules[name]
    return aside


def _came_from(module: ModuleType | None, folder: Path) -> bool:
    """Whether it is a file of the folder, or a folder in it that is a package without any file."""
    said = getattr(module, "__dict__", {})
    file, path = said.get("__file__"), said.get("__path__")
    places = [file] if isinstance(file, str) else list(path or ())
    return any(_is_in(place, folder) for place in places)


def _is_in(place: object, folder: Path) -> bool:
    """Relative places are those of the working directory."""
    if not isinstance(place, str):
        return False
    whole = os.path.abspath(place)
    return whole == str(folder) or whole.startswith(f"{folder}{os.sep}")
