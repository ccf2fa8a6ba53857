"""Tries an unpacked bundle as a container would run it: `python -m topsail.runtime.trial FOLDER ANSWER`, or with HOSTED
behind that, as a host of many models would.

The output for the manifest's example, which is tried alone and in a batch, goes to the file ANSWER as JSON, and those
for the inputs in ANSWER.inputs, if that is there. What keeps the model from giving them goes to stderr, with a status
other than 0.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..container import source
from ..container.dry_run import Answer, dry_run
from ..container.loading import prepare, warm_up
from ..container.runner import Runner
from . import modules
from .folder import Folder, decoded
from .load import load
from .start import guarded

HOSTED = "hosted"
_BATCH = 3  # inputs: a model that was only ever tried on one may fail on more


def main(arguments: list[str]) -> int:
    path, answer, *how = arguments
    return guarded(lambda: _try(Path(path), Path(answer), HOSTED in how))


def _try(path: Path, answer: Path, hosted: bool) -> None:
    folder = Folder(path.resolve(), trial=True)
    folder.check_python()
    if not hosted:
        source.enter(str(folder.path))
    began = time.monotonic()
    with ThreadPoolExecutor(1) as loader:
        on_its_thread = loader.submit if hosted else _here
        runner = on_its_thread(_loaded, folder, hosted).result()
        try:
            said = {"seconds": time.monotonic() - began} | _answered(runner, folder)
            if hosted and "error" in said and "error" not in on_its_thread(_answered, runner, folder).result():
                said["error"] = f"{said['error']}. {_BOUND}"
            if "error" not in said:
                on_its_thread(warm_up, runner).result()
            said |= {"on_cpu_instead": folder.on_cpu_instead}
            if checked_in(answer).exists():
                said["checked"] = on_its_thread(_checked, runner, folder, checked_in(answer)).result()
        finally:
            on_its_thread(runner.teardown).result()
    answer.write_text(json.dumps(said))


_BOUND = (
    "It answers on the thread that loaded it, and a host loads on one thread and answers on another: make connections, "
    "event loops and the like where they are used, or deploy it without hosted_by"
)


def _here(do: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """What a thread would do, done at once."""
    done: Future[Any] = Future()
    done.set_result(do(*arguments))
    return done


def _loaded(folder: Folder, hosted: bool) -> Runner:
    manifest = folder.manifest
    with modules.entered(folder.path, frozenset(sys.modules)) if hosted else nullcontext():
        return prepare(load(folder), manifest.input_type or None, manifest.input_length or None)


def _answered(runner: Runner, folder: Folder) -> dict[str, object]:
    example, named = folder.example(), folder.named
    made = example is None and named is not None
    if made and named:
        example = {t.name: t.zeros() for t in named.inputs}
    if example is None:
        return {}
    [alone, *_] = dry_run(runner, [example] * folder.batch())
    for one in (alone, *dry_run(runner, [example] * (folder.batch() if folder.batch() > 1 else _BATCH))):
        if one.error is not None:
            return {"error": f"{one.error}. {_ZEROS}" if made else one.error}
        if not made and not _finite(one.outputs or one.output):
            return {
                "error": f"it answers {_shown(one)}: NaN and infinity cannot be answers, and clients get the default"
            }
    return {"output": _shown(alone)}


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    return not isinstance(value, list) or all(map(_finite, value))


def checked_in(answer: Path) -> Path:
    """The file with inputs whose outputs are wanted as they are."""
    return answer.with_name(f"{answer.name}.inputs")


def _checked(runner: Runner, folder: Folder, file: Path) -> list[dict[str, Any]]:
    kind, size = folder.manifest.input_type, folder.batch()
    inputs = [decoded(x, kind, folder.named) for x in json.loads(file.read_text())]
    filled = inputs + inputs[-1:] * (-len(inputs) % size)
    found = [a for i in range(0, len(filled), size) for a in dry_run(runner, filled[i : i + size])]
    return [
        {"error": a.error} if a.error is not None else {"output": a.outputs or a.output} for a in found[: len(inputs)]
    ]


_ZEROS = "There is no example, so that zeros were tried: give one as example="


def _shown(answer: Answer) -> str:
    text = repr(answer.outputs or answer.output)
    return text if len(text) <= 80 else text[:77] + "..."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
