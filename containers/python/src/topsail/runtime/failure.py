"""Why a bundle cannot be served here."""

from __future__ import annotations

from importlib import import_module
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


def missing(e: ModuleNotFoundError) -> PermanentFailure:
    """What to say where a module is not there."""
    module = (e.name or "").partition(".")[0]
    if not module:
        return PermanentFailure(f"a module is missing: {e}; add what has it to the requirements of the bundle")
    distribution = DISTRIBUTIONS.get(module, module)
    return PermanentFailure(
        f"the model needs the module {module!r}, which its environment does not have: "
        f"add {distribution} with its version to the requirements of the bundle, like {distribution}==1.0"
    )
