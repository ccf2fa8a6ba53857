"""Modules that are used where they are installed; None where they are not."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def find(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


numpy = find("numpy")
lz4_block = find("lz4.block")  # the feature is not offered without it
