"""SIGTERM and SIGINT, for as long as a container runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def caught(on_signal: Callable[[], None], descriptor: int) -> Iterator[None]:
    """Calls on_signal for each signal, and writes its number to the descriptor.

    Python runs handlers on the main thread only, and there only between two of its own steps; the number is written at
    once, also while the main thread is inside of a long computation. Off the main thread nothing is caught: Python
    does not allow it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, lambda *_: on_signal())) for number in _NUMBERS]
    wakeup = signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    active = True

    def restore() -> None:
        if active:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before:
                signal.signal(number, handler)

    _in_forked_children(restore)
    try:
        yield
    finally:
        restore()
        active = False


def _in_forked_children(restore: Callable[[], None]) -> None:
    """Calls restore in every process that the model forks, a multiprocessing pool's for one. Such a process must die
    from its own SIGTERM, and must not write into the pipe that it shares with this one. A signal that comes before it
    could restore anything has to wait: the mask goes over to the child."""
    if not hasattr(os, "register_at_fork"):
        return
    masks = threading.local()  # several threads may fork

    def block() -> None:
        masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

    def restore_and_unblock() -> None:
        restore()
        unblock()

    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=restore_and_unblock)
