"""Topsail under Clipper's names.

`ClipperNames` gives the client the methods that Clipper's admin client has, so that programs need few changes.
`TopsailContainerManager` lets the package clipper_admin itself, unchanged, start real replicas through Topsail:

    clipper = clipper_admin.ClipperConnection(topsail.clipper.TopsailContainerManager())
    clipper.connect()
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..client.clipper import ClipperNames
    from .manager import TopsailContainerManager

__all__ = ["ClipperNames", "TopsailContainerManager"]

_MODULE = {"ClipperNames": "topsail.client.clipper", "TopsailContainerManager": "topsail.clipper.manager"}


def __getattr__(name: str) -> object:
    """Imports what needs the client when it is asked for: the container of Clipper's models does without."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE[name]), name)
