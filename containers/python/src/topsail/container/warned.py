"""Warnings of Python, each shown once.

Libraries that change the filters of warnings while they work make Python forget what it has shown, so that a model
would warn for every batch.
"""

from __future__ import annotations

import warnings
from typing import Any

_MOST = 1000  # different ones


def show_each_once() -> None:
    """From now on in this process. A program that sets `warnings.showwarning` itself has the last word."""
    seen: set[tuple[Any, ...]] = set()
    show = warnings.showwarning

    def once(message: Any, category: Any, filename: str, lineno: int, *more: Any) -> None:
        key = category, str(message), filename, lineno
        if key not in seen and len(seen) < _MOST:
            seen.add(key)
            show(message, category, filename, lineno, *more)

    warnings.showwarning = once  # type: ignore[assignment]
