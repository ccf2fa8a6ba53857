"""The commit that git has checked out."""

from __future__ import annotations

import os
import subprocess

_WITHIN = 2.0  # seconds; git looks at every file for changes
_DESCRIBE = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]


def checked_out() -> str:
    """Its hash in the current folder, with -dirty where files differ from it; empty where there is none, or no git."""
    try:
        environ = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(_DESCRIBE, capture_output=True, timeout=_WITHIN, env=environ, check=True, text=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
