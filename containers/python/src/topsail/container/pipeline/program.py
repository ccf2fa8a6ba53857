"""The program that this process runs, to be run again for each worker of a pipeline."""

from __future__ import annotations

import os
import sys

from .stage import PipelineError


def _here() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed
        return None


# Where the program was started, unless it went elsewhere before it imported topsail: its arguments may be relative.
FOLDER = _here()


def command() -> list[str]:
    """It raises PipelineError."""
    if not sys.executable:
        raise PipelineError("a pipeline is served by a Python program, and this is not one: sys.executable is empty")
    return [sys.executable, *sys.orig_argv[1:]]
