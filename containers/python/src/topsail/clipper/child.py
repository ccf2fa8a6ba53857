"""Topsail as a child process."""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

_FOR_CLIENTS = ("TOPSAIL_URL", "TOPSAIL_ADMIN_URL", "TOPSAIL_API_KEY")
_GRACE = 20.0  # seconds to end what is under way


class Child:
    """`topsail local`, until `stop` or the end of this program. What it says goes to the file `log`."""

    def __init__(self, command: Sequence[str]) -> None:
        """It raises OSError where there is no such program."""
        file, name = tempfile.mkstemp(prefix="topsail-", suffix=".log")
        self.log = Path(name)
        environ = {k: v for k, v in os.environ.items() if k not in _FOR_CLIENTS}  # they are no settings of a server
        with open(file, "wb") as log:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True
            )
        atexit.register(self.stop)

    def wait(self, ready: Callable[[], bool], seconds: float) -> None:
        """Until it is ready. It raises RuntimeError where it ended or took too long, with its last words."""
        deadline = time.monotonic() + seconds
        while not ready():
            if (status := self._process.poll()) is not None:
                raise RuntimeError(f"it ended with status {status}: {self.last_words()}")
            if time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"it was not ready within {seconds:g} s: {self.last_words()}")
            time.sleep(0.05)

    def last_words(self, lines: int = 5) -> str:
        said = self.log.read_text(errors="replace").strip().splitlines()
        return "\n".join(said[-lines:]) or "it said nothing"

    def stop(self, graceful: bool = True) -> None:
        atexit.unregister(self.stop)
        if self._process.poll() is not None:
            return
        if graceful:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        self._process.kill()
        self._process.wait()
