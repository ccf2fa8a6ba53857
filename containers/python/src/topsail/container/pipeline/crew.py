"""The worker processes of a pipeline inside one program."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from ...backoff import Backoff
from ...protocol import predict
from ...protocol.constants import MAX_FRAME
from ...protocol.payload import Value
from ...protocol.reply import Entry
from .. import dry_run
from ..model import Model
from . import loading, stage_codec
from .stage import PipelineError, Stage, StageError

_END = 5.0  # seconds that a worker has to end


class CrewWorker:
    """One process that runs a stage, a batch at a time. Its methods wait, and are for a thread of its own."""

    def __init__(self, stage: Stage, index: int) -> None:
        self.stage = stage
        self._name = f"{stage.name}/{index}"
        self._cpus = {stage.cpus[index % len(stage.cpus)]} if stage.cpus else usable_cpus()
        self._backoff = Backoff()
        self._ended = False

    def start(self) -> None:
        """Returns when the stage is loaded. It raises StageError."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs, self.stage, self._cpus), name=f"topsail-{self._name}", daemon=True
        )
        try:
            self._process.start()
        except Exception as e:  # whatever pickle says of what the user has written
            raise StageError(f"stage {self.stage.name!r} cannot be given to a process: {e}") from e
        finally:
            theirs.close()
        self._began = time.monotonic()
        try:
            failure = self._connection.recv()
        except EOFError:
            failure = self._how()
        if failure:
            raise StageError(f"stage {self.stage.name!r} cannot be loaded: {failure}")

    def run(self, payloads: Sequence[list[Value]]) -> list[Entry]:
        """What becomes of a batch. It raises StageError when the process ends meanwhile."""
        try:
            self._connection.send_bytes(dry_run.encode_payloads(payloads))
            return dry_run.entries(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise StageError(f"its worker {self._name} ended: {self._how()}") from None

    def start_again(self) -> None:
        """Starts it in the place of one that has ended, again and again, until it is loaded or the crew ends."""
        while not self._ended:
            self._backoff.lived(time.monotonic() - self._began)
            time.sleep(self._backoff.next())
            with suppress(StageError):
                return self.start()

    def end(self) -> None:
        """Ends the process, and with it what waits for it."""
        self._ended = True
        if self._process.pid is None:  # it could not be started
            return
        self._process.terminate()
        self._process.join(_END)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _how(self) -> str:
        self._process.join(_END)
        code = self._process.exitcode
        return f"exit status {code}" if code is None or code >= 0 else f"killed by signal {-code}"


def usable_cpus() -> set[int]:
    """Those that this process may use; none where the system does not say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def check_cpus(cpus: Sequence[int]) -> None:
    """It raises PipelineError for a CPU that this process may not use, and where none can be chosen."""
    there = usable_cpus()
    if cpus and not there:
        raise PipelineError("this system does not let a process choose its CPUs: leave cpus out")
    if missing := set(cpus) - there:
        raise PipelineError(f"there is no CPU {min(missing)} for this process")


def _work(connection: Connection, stage: Stage, cpus: set[int]) -> None:
    """The process of a worker. It ends with the program, which then closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program has it, too, and ends its workers
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        runner = loading.prepare(Model(stage.find()), stage, None, None, stage_codec.encode, raw=True)
    except BaseException as e:
        connection.send(f"{type(e).__name__}: {e}")
        raise
    connection.send("")
    with suppress(EOFError, OSError):
        while True:
            body: Any = memoryview(connection.recv_bytes())
            connection.send_bytes(runner.run(predict.decode(body), time.monotonic(), MAX_FRAME))
