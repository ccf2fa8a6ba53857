"""What the package clipper_admin does otherwise where a container manager builds models without Docker.

Its code takes the image of its own for the Python that it runs on, of which there are none after 3.6, and asks Docker
to build on it. Nothing of that is for a container manager to say, so it is changed in the package that is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any

_DEPLOYERS = "clipper_admin.deployers."
_NO_IMAGE = "topsail"  # in the place of the image to build on


def adapt() -> None:
    """Connections have their container manager build a model where it can, and deployers take any Python. Other
    container managers are served as ever. Nothing happens where the package is not installed, or this was done."""
    try:
        from clipper_admin import ClipperConnection
    except ImportError:
        return
    if hasattr(ClipperConnection.build_model, "__wrapped__"):
        return
    ClipperConnection.build_model = _asking_the_manager(ClipperConnection.build_model)
    for name, module in list(sys.modules.items()):
        if name.startswith(_DEPLOYERS):
            _take_any_python(module)
    sys.meta_path.insert(0, _Deployers())


def _asking_the_manager(build_model: Callable[..., str]) -> Callable[..., str]:
    @wraps(build_model)
    def build(
        self: Any,
        name: str,
        version: Any,
        model_data_path: str,
        base_image: str,
        container_registry: str | None = None,
        pkgs_to_install: Sequence[str] | None = None,
    ) -> str:
        build = getattr(self.cm, "build_model", None)
        if build is None:
            return build_model(self, name, version, model_data_path, base_image, container_registry, pkgs_to_install)
        image: str = build(model_data_path, pkgs_to_install or ())
        return image

    return build


def _take_any_python(deployers: ModuleType) -> None:
    """Only for the image of its own does a deployer look at which Python it runs on."""
    for function in vars(deployers).values():
        if not isinstance(function, FunctionType) or not function.__defaults__:
            continue
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        given = zip(names[-len(function.__defaults__) :], function.__defaults__, strict=True)
        function.__defaults__ = tuple(_NO_IMAGE if one == ("base_image", "default") else one[1] for one in given)


class _Deployers(MetaPathFinder):
    """Finds the deployers that are imported later."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(_DEPLOYERS):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _take_any_python(module)
