"""Models in R."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .deployment import Deployment
from .example import read
from .failure import DeployFailed
from .frozen import Frozen
from .packing import content, deploy, files_of
from .terms import Terms


def deploy_r(
    name: str,
    path: str | os.PathLike[str],
    example: Any,
    *,
    seconds: float | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a file of R that defines `predict(inputs)`, or a folder with such a file model.R and what that reads, as
    `topsail_save` of containers/r/topsail.R makes it. `seconds` is how long R may take for a batch, 30 without. Where
    it runs it needs R with jsonlite and the packages that the file loads."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    place = Path(path)
    entry = "model.R" if place.is_dir() else place.name
    if not entry.endswith(".R"):
        raise DeployFailed(f"{str(place)!r} is not a file .R: give one, or a folder with a model.R")
    files = files_of(place) if place.is_dir() else {entry: content(place)}
    if entry not in files:
        raise DeployFailed(f"the folder {str(place)!r} has no model.R: make it with topsail_save in R, or name a file")
    options = {} if seconds is None else {"seconds": f"{seconds:g}"}
    return deploy(name, "r", entry, Frozen(b"", set(), files), shown, 0, options, said)
