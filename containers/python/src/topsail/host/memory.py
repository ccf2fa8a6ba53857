"""What this process takes of the machine's memory."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes now. Where the system does not say so, the most that there ever were."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def size_of(folder: Path) -> int:
    """Bytes of all files in it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Garbage:
    """What was dropped, and may still be held by cycles. Finding those stops every thread for as long as it takes to
    look at all objects there are, some 20 ms where scikit-learn is loaded, so it is done when there is enough."""

    def __init__(self, enough: int = 8 << 20) -> None:
        """`enough` is in bytes."""
        self._enough = enough
        self._bytes = 0

    def add(self, size: int) -> None:
        self._bytes += size
        if self._bytes >= self._enough:
            self._bytes = 0
            gc.collect()
        give_back()


def give_back() -> None:
    """Gives free memory back to the system, where the C library has a way to."""
    with suppress(OSError, AttributeError):  # it is one of glibc's own
        ctypes.CDLL(None).malloc_trim(0)
