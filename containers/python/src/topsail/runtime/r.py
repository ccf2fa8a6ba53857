"""An R file with a function `predict(inputs)`, run by a process of Rscript that stays."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from .failure import PermanentFailure
from .folder import Folder

_LOOP = Path(__file__).with_name("loop.R")
_LOADING = 60.0  # seconds for R to read the file
_MOST_LINE = 256 << 20  # bytes of an answer
_MISSING = 3  # exit status of the loop where a package is missing


def load(folder: Folder) -> Program:
    """Option `seconds` is how long R may take for one batch, 30 without."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        packages = "on Debian: r-base-core, r-cran-jsonlite"
        raise PermanentFailure(f"Rscript is not on the PATH: install R where this model runs ({packages})")
    return Program(rscript, folder.entry(".R"), _seconds(folder.option("seconds", "30")))


class RError(Exception):
    """What R said about a batch."""


class Program:
    """R reads lines of JSON from its standard input, and answers on a pipe of its own, so that what a model prints
    cannot come between. A process that ended or hung is started anew with the next batch."""

    def __init__(self, rscript: str, file: Path, seconds: float) -> None:
        self._command = [rscript, "--vanilla", str(_LOOP), str(file)]
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = -1  # the pipe's end for reading
        self._start()

    def predict(self, inputs: list[Any]) -> list[Any]:
        if self._process is None:
            self._start()
        question = json.dumps({"inputs": [_plain(x) for x in inputs]}, allow_nan=False)
        answer = self._ask(question.encode() + b"\n", self._seconds)
        if "error" in answer:
            raise RError(answer["error"])
        return list(answer["outputs"])

    def teardown(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            os.close(self._answers)

    def _start(self) -> None:
        self._answers, writing = os.pipe()
        try:
            command = [*self._command, str(writing)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=2, pass_fds=[writing])
        finally:
            os.close(writing)
        try:
            answer = self._ask(b"", _LOADING)
        except RError as e:
            raise PermanentFailure(f"R could not load {Path(self._command[3]).name}: {e}") from None
        if "error" in answer:
            self.teardown()
            raise PermanentFailure(f"R could not load {Path(self._command[3]).name}: {answer['error']}")

    def _ask(self, question: bytes, seconds: float) -> dict[str, Any]:
        """Sends a line and waits for one. R's end counts as an error, and so does its silence, which ends it."""
        deadline = time.monotonic() + seconds
        try:
            self._send(question, deadline)
            answer: dict[str, Any] = json.loads(self._line(deadline))
            return answer
        except TimeoutError:
            why = f"R did not answer within {seconds:g} s"
        except (OSError, EOFError):
            why = "R ended"
        except ValueError:
            why = "R answered with what is not JSON"
        self._give_up(why)

    def _give_up(self, why: str) -> NoReturn:
        assert self._process is not None
        process = self._process
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5 if why == "R ended" else 0)
        status = process.returncode
        self.teardown()
        if status == _MISSING:
            raise PermanentFailure('R has no package jsonlite, which Topsail needs: install.packages("jsonlite")')
        raise RError(why if status is None else f"{why} with status {status}; its last words are in the log")

    def _send(self, question: bytes, deadline: float) -> None:
        assert self._process is not None and self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        os.set_blocking(pipe, False)
        left = memoryview(question)
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_WRITE)
            while left:
                _wait(ready, deadline)
                left = left[os.write(pipe, left[: 1 << 16]) :]

    def _line(self, deadline: float) -> bytes:
        line = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(self._answers, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                _wait(ready, deadline)
                piece = os.read(self._answers, 1 << 16)
                if not piece:
                    raise EOFError
                line += piece
                if len(line) > _MOST_LINE:
                    raise ValueError
        return bytes(line)


def _wait(ready: selectors.BaseSelector, deadline: float) -> None:
    if not ready.select(max(0.0, deadline - time.monotonic())):
        raise TimeoutError


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return list(value)
    return value if isinstance(value, str) else value.tolist()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise PermanentFailure(f"the option seconds = {text!r} is no time for a batch")
    return seconds
