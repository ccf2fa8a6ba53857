"""Why a bundle cannot be served here."""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

# What has to be installed for a module whose distribution has another name.
DISTRIBUTIONS = {
    "cv2": "opencv-python",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


class PermanentFailure(Exception):
    """The bundle cannot be served here, however often it is tried; the text says what to change."""


def need(module: str) -> Any:
    """The module, which the bundle's environment must have. It raises PermanentFailure."""
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        raise missing(e) from None
    except ImportError as e:
        raise PermanentFailure(f"{module} is installed and cannot be imported: {e}") from e


def _version_of(module: str) -> str:
    """The installed package that has a module, with its version; empty where there is none."""
    if module not in sys.modules and find_spec(module) is None:
        return ""
    distribution = DISTRIBUTIONS.get(module, module)
    try:
        return f"{distribution} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return f"{module} {getattr(sys.modules.get(module), '__version__', '')}".strip()


def missing(e: ModuleNotFoundError) -> PermanentFailure:
    """What to say where a module is not there. Of a package that is there, another version has it."""
    module, dot, _ = (e.name or "").partition(".")
    if not module:
        return PermanentFailure(f"a module is missing: {e}; add what has it to the requirements of the bundle")
    if dot and (found := _version_of(module)):
        return PermanentFailure(
            f"the model needs the module {e.name!r}, and {found} does not have it: require the version of "
            f"{found.partition(' ')[0]} that the model was made with"
        )
    distribution = DISTRIBUTIONS.get(module, module)
    return PermanentFailure(
        f"the model needs the module {module!r}, which its environment does not have: "
        f"add {distribution} with its version to the requirements of the bundle, like {distribution}==1.0"
    )
