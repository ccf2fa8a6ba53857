"""From the folder of a bundle to a model that is served."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..container import source
from ..container.loading import WarmUpFailed
from ..container.pipeline import description
from ..container.serving import serve_from, serve_pipeline
from ..container.settings import SettingsError
from ..output import BadInput
from .failure import PermanentFailure
from .folder import Folder
from .load import load

FAILED = 1  # exit status
REFUSED = 78  # exit status: configuration error; starting the same again will not help
USAGE = 64


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m topsail.runtime FOLDER\nTopsail starts this with an unpacked bundle.", file=sys.stderr)
        return USAGE
    return guarded(lambda: _run(Path(arguments[0])))


def guarded(run: Callable[[], None]) -> int:
    """Runs it and returns an exit status; what it raises becomes a sentence on stderr."""
    try:
        run()
    except PermanentFailure as e:
        return _end(REFUSED, str(e))
    except (WarmUpFailed, BadInput, SettingsError) as e:
        return _end(FAILED, str(e))
    except SystemExit as e:
        if str(e.code).startswith("topsail: "):
            raise
        said = "" if e.code is None else f" with {e.code!r}"
        return _end(FAILED, f"the model ended the process{said}: it called sys.exit, or raised SystemExit")
    except Exception as e:  # the model's own: the traceback is for its author, the sentence for everyone
        traceback.print_exc()
        return _end(FAILED, f"the model failed: {type(e).__name__}: {e}")
    return 0


def _end(status: int, why: str) -> int:
    print(f"topsail: {why}", file=sys.stderr, flush=True)
    return status


def _run(path: Path) -> None:
    folder = Folder(path.resolve())
    folder.check_python()
    source.enter(str(folder.path))  # models read their own files by relative names
    _serve(folder)


def _serve(folder: Folder) -> None:
    """The version may say more than the bundle, and Topsail hands that down in the environment."""
    manifest = folder.manifest
    arguments: dict[str, Any] = {
        "input_type": None if os.environ.get("TOPSAIL_INPUT_TYPE") else manifest.input_type or None,
        "input_length": None if os.environ.get("TOPSAIL_INPUT_LENGTH") else manifest.input_length or None,
    }
    if pipeline := description.of_code(os.environ):
        if manifest.runtime != "python":
            raise PermanentFailure(
                f"stages are run by the runtime 'python', and the bundle is for {manifest.runtime!r}"
            )
        serve_pipeline(pipeline, **arguments)
    else:
        folder.take_signature(os.environ.get("TOPSAIL_SIGNATURE", ""))
        serve_from(lambda: load(folder), **arguments)
