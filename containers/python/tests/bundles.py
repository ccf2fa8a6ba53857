"""Bundles for tests, as folders."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from topsail import bundle
from topsail.bundle import PYTHON, Manifest


def unpacked(folder: Path, runtime: str, entry: str, files: dict[str, bytes], **said: Any) -> Path:
    place = folder / "bundle"
    bundle.build(Manifest(runtime, entry, **(_python(runtime) | said)), files).unpack(place)
    return place


def source(folder: Path, text: str, entry: str = "model:predict", **said: Any) -> Path:
    return unpacked(folder, "python", entry, {"model.py": text.encode()}, **said)


def pickled(folder: Path, thing: Any, runtime: str = "sklearn", **said: Any) -> Path:
    return unpacked(folder, runtime, "model.pkl", {"model.pkl": pickle.dumps(thing)}, **said)


def _python(runtime: str) -> dict[str, str]:
    return {} if runtime == "command" else {"python": PYTHON}
