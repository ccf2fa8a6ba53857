"""Topsail under Clipper's names.

`ClipperNames` gives the client the methods that Clipper's admin client has, so that programs need few changes.
`TopsailContainerManager` lets the package clipper_admin itself, unchanged, start real replicas through Topsail:

    clipper = clipper_admin.ClipperConnection(topsail.clipper.TopsailContainerManager())
    clipper.connect()
"""

from importlib import import_module

from .names import ClipperNames

__all__ = ["ClipperNames", "TopsailContainerManager"]


def __getattr__(name: str) -> object:
    """Imports the manager when it is asked for: it needs the client, and the client needs the names."""
    if name != "TopsailContainerManager":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(".manager", __name__).TopsailContainerManager
