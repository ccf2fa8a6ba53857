"""A bundle in the place of the image that Clipper builds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from .. import bundle
from ..bundle import PYTHON, Bundle, BundleError, Manifest
from ..deploy import requirements
from ..deploy.failure import DeployFailed
from ..deploy.frozen import Frozen, looked_over
from .model import LIBRARIES

_PICKLES = ("func.pkl", "pytorch_model.pkl")


def image(folder: Path, packages: Sequence[str] = ()) -> Bundle:
    """The bundle of a folder that a deployer of clipper_admin has saved. The packages that it needs are those that are
    installed here, and `packages`, as pip takes them. It raises DeployFailed."""
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    if "func.pkl" not in files:
        raise DeployFailed(
            f"{folder} has no func.pkl, which the deployers of clipper_admin save: with Topsail no other image can be "
            "built. Pack what it is to be with topsail.bundle, and deploy that"
        )
    if other := sorted(n for n in files if n.startswith(("tfmodel/", "mxnet_model"))):
        raise DeployFailed(f"{other[0]} is of a library that no Python runs any more which Topsail runs on")
    frozen = Frozen(b"", sources=dict(files))
    for name in set(_PICKLES) & files.keys():
        found = looked_over(files[name])
        frozen.distributions |= found.distributions
        frozen.sources = found.sources | frozen.sources
    # Keras loads what its own settings say, and they are not to be found where the model runs.
    options = {"backend": import_module("keras").config.backend()} if "keras_model.h5" in files else {}
    libraries = {module for name, modules in LIBRARIES.items() if name in files for module in modules}
    libraries |= {"numpy", *options.values()}
    frozen.distributions |= {name for module in libraries for name in requirements.of_module(module) or {module}}
    installed = {p for p in packages if _is_installed(p)}
    given = [p for p in packages if p not in installed]
    pinned = requirements.pinned(frozen.distributions | installed, given)
    try:
        manifest = Manifest("python", "topsail.clipper.model:Model", PYTHON, pinned, options=options)
        return bundle.build(manifest, frozen.sources)
    except BundleError as e:
        raise DeployFailed(str(e)) from None


def _is_installed(package: str) -> bool:
    """A name alone, of which the version that is here is meant: what it has saved, another may not read."""
    return bool(re.fullmatch(r"[A-Za-z0-9._-]+", package)) and requirements.is_installed(package)
