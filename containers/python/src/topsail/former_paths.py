"""The paths that modules had in former releases: models that were pickled then name them, and programs may."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

# What a model or a program may have imported; packages with all that is in them.
_PRESENT = {
    "topsail.admin": "topsail.client.admin",
    "topsail.client_answers": "topsail.client.answers",
    "topsail.client_async": "topsail.client.aio",
    "topsail.client_errors": "topsail.client.errors",
    "topsail.client_requests": "topsail.client.requests",
    "topsail.clipper.names": "topsail.client.clipper",
    "topsail.input_type": "topsail.container.input_type",
    "topsail.life": "topsail.container.lifecycle",
    "topsail.loading": "topsail.container.loading",
    "topsail.pipeline": "topsail.container.pipeline",
    "topsail.rehearsal": "topsail.container.dry_run",
    "topsail.serving": "topsail.container.serving",
    "topsail.settings": "topsail.container.settings",
    "topsail.source": "topsail.container.source",
    "topsail.wire": "topsail.protocol",
}


def present(name: str) -> str | None:
    """The path that a module has now; None for one that has not moved."""
    if name in _PRESENT:
        return _PRESENT[name]
    package, _, module = name.rpartition(".")
    return f"{_PRESENT[package]}.{module}" if package in _PRESENT else None


class _Finder:
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = present(name) if name.startswith("topsail.") else None
        return None if found is None else ModuleSpec(name, _Loader(found))  # type: ignore[arg-type] # importlib.abc is slow to import


class _Loader:
    """Loads the module as it is called now, so that there is only one of each."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, _: ModuleSpec) -> ModuleType:
        self._module = import_module(self._name)
        self._spec = self._module.__spec__
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # in the place of that of its former path


def install() -> None:
    """Before all other finders: to them a module of a package that has moved would be another one."""
    sys.meta_path.insert(0, _Finder())
