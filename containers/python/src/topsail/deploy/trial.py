"""Tries a bundle here, as a container would run it, before it is published."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..bundle import ALONE, Bundle
from ..runtime.trial import HOSTED, checked_in
from .compared import Comparison
from .failure import DeployFailed


def can_be_tried(bundle: Bundle) -> bool:
    """What programs of their own need is where they run, and not always here."""
    runtime = bundle.manifest.runtime
    if runtime == "r":
        return shutil.which("Rscript") is not None
    if runtime == "pyspark":
        return find_spec("pyspark") is not None and (shutil.which("java") is not None or "JAVA_HOME" in os.environ)
    return runtime not in ALONE


def run(
    bundle: Bundle, timeout: float, hosted: bool, comparison: Comparison | None = None, also: Sequence[Any] = ()
) -> dict[str, Any]:
    """Loads the bundle in a process of its own, as a host would if it is `hosted`, and gives it the example, what is
    to be compared, and `also` inputs as JSON has them. It returns `seconds` for loading, with an example `output`,
    shortened text, and in `also` an `output` or an `error` for each of those. It raises DeployFailed."""
    compared = comparison.inputs if comparison else []
    with tempfile.TemporaryDirectory(prefix="topsail-") as name:
        folder, answer = Path(name, "bundle"), Path(name, "answer")
        bundle.unpack(folder)
        if compared or also:
            checked_in(answer).write_text(json.dumps([*compared, *also]))
        command = [sys.executable, "-m", "topsail.runtime.trial", str(folder), str(answer)]
        command += [HOSTED] if hosted else []
        place = name if hosted else folder  # which Python looks for modules in
        try:
            done = subprocess.run(
                command, cwd=place, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            raise DeployFailed(f"the model took more than {timeout:g} s to load and answer its example") from None
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0 or not answer.exists():
            raise DeployFailed(_failed(said, done.returncode))
        result: dict[str, Any] = json.loads(answer.read_text())
    if "error" in result:
        raise DeployFailed(f"the model fails on the example: {result['error']}" + (f"\n{said}" if said else ""))
    checked = result.get("checked", [])
    if comparison:
        comparison.check(checked[: len(compared)])
    return result | {"also": checked[len(compared) :]}


def _failed(said: str, status: int) -> str:
    """The sentence at the end, and before it what led there."""
    before, _, sentence = said.rpartition("topsail: ")
    if not sentence:
        return f"the model ended the process with status {status} when it was tried"
    return f"the model cannot be served: {sentence}" + (f"\n{before.strip()}" if before.strip() else "")


def _environment() -> dict[str, str]:
    """This one's, but for where modules are looked for: the container will not have the folders of this program."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TOPSAIL_", "PYTHONPATH"))}
    home = str(Path(__file__).parents[2])
    path = {} if home in site.getsitepackages() else {"PYTHONPATH": home}
    return kept | path | {"PYTHONDONTWRITEBYTECODE": "1"}
