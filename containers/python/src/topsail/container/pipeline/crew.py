"""The worker processes of a pipeline inside one program."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
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
        self._cpus = stage.cpus_of(index) or usable_cpus()
        self._backoff = Backoff()
        self._lock = threading.Lock()  # of what follows
        self._process: BaseProcess | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        """Returns when the stage is loaded. It raises StageError."""
        self._connection = self._spawn()
        self._began = time.monotonic()
        try:
            failure = self._connection.recv()
        except EOFError:
            failure = self._how()
        if failure:
            raise StageError(f"stage {self.stage.name!r} cannot be loaded: {failure}")

    def _spawn(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_work, args=(theirs, self.stage, self._cpus), name=f"topsail-{self._name}", daemon=True
        )
        with self._lock, theirs:
            if self._ended.is_set():
                raise StageError("the pipeline has ended")
            try:
                process.start()
            except Exception as e:  # whatever pickle says of what the user has written
                raise StageError(f"stage {self.stage.name!r} cannot be given to a process: {e}") from e
            self._process = process
        return ours

    def run(self, payloads: Sequence[list[Value]]) -> list[Entry]:
        """What becomes of a batch. It raises StageError when the process ends meanwhile."""
        try:
            self._connection.send_bytes(dry_run.encode_payloads(payloads))
            return dry_run.entries(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise StageError(f"its worker {self._name} ended: {self._how()}") from None

    def start_again(self) -> None:
        """Starts it in the place of one that has ended, again and again, until it is loaded or the crew ends."""
        self._backoff.lived(time.monotonic() - self._began)
        while not self._ended.wait(self._backoff.next()):
            with suppress(StageError):
                return self.start()

    def end(self) -> None:
        """Ends the process, and with it what waits for it. No other one is started."""
        with self._lock:
            self._ended.set()
            process = self._process
        if process is None:  # none could be started
            return
        process.terminate()
        process.join(_END)
        if process.is_alive():
            process.kill()
            process.join()

    def _how(self) -> str:
        process = self._process
        if process is None:
            return "it was not started"
        process.join(_END)
        code = process.exitcode
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
