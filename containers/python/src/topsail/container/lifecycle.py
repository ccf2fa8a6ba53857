"""The life of a container's process: it is linked to a sidecar, serves, and ends in order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from . import signals
from .link import Link

_PATIENCE = 1.0  # seconds to connect, only to say why the model cannot be loaded


class SidecarGone(Exception):
    """There was no connection to the sidecar for too long."""


class Stopped(BaseException):
    """A signal while there is nothing to finish, or a second one, from an operator who does not want to wait."""


def run(link: Link, on_signal: Callable[[], None], serve: Callable[[], None]) -> None:
    """Links, serves until `serve` returns or `on_signal` raises Stopped, and takes leave of the sidecar. It raises
    SidecarGone, or what `serve` raises, which the sidecar is told as well."""
    failed: BaseException | None = None
    with suppress(Stopped), signals.caught(on_signal, link.wakeup.descriptor):  # it may come on the way out, too
        link.start()
        try:
            serve()
        except Stopped:
            pass
        except BaseException as e:
            failed = e
        if failed:
            link.close(f"{type(failed).__name__}: {failed}", patience=_PATIENCE)
        else:
            link.close("stopped")
    if failed:
        raise failed
    if link.failure:
        raise SidecarGone(link.failure)
