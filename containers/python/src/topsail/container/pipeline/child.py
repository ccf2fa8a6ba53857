"""One process of a worker, as its supervisor sees it."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .control import FAILED, GONE, READY
from .lines import Lines, written_to

_BOOTSTRAP = str(Path(__file__).with_name("bootstrap.py"))
_READ = 1 << 16
_MOST_REST = 1 << 20  # bytes that are still read of what a worker wrote before it ended
_MOST_SAID = 1 << 16  # bytes that it may say without ending a line


class Child:
    """Runs from the moment it is made. What it writes comes out with its name before each line."""

    def __init__(
        self,
        name: str,
        program: Sequence[str],
        folder: str | None,
        cpus: Collection[int],
        environment: Callable[[int], Mapping[str, str]],
        selector: selectors.BaseSelector,
    ) -> None:
        """`environment` is told the descriptor of the worker's end of the control socket. It raises OSError."""
        self.ready = False
        self.failed = ""  # why it could not load, in its own words
        self.gone = ""  # why it gave its sidecar up
        self.began = time.monotonic()
        self._selector = selector
        self._said = bytearray()
        self._control, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        _BOOTSTRAP,
                        str(os.getpid()),
                        ",".join(map(str, sorted(cpus))),
                        *program,
                    ],
                    cwd=folder,
                    env=environment(theirs.fileno()),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # signals for the program go to the supervisor alone, which has an order
                    bufsize=0,
                )
            except BaseException:
                self._control.close()
                raise
        self._control.setblocking(False)
        selector.register(self._control, selectors.EVENT_READ, self._hear)
        self._streams: dict[int, Lines] = {}
        for ours, pipe in ((1, self._process.stdout), (2, self._process.stderr)):
            assert pipe is not None
            self._follow(pipe.fileno(), Lines(f"[{name}] ", written_to(ours)))

    def _follow(self, descriptor: int, lines: Lines) -> None:
        os.set_blocking(descriptor, False)
        self._streams[descriptor] = lines
        self._selector.register(descriptor, selectors.EVENT_READ, lambda: self._read(descriptor))

    def _read(self, descriptor: int) -> int:
        """Passes some of what it wrote on; 0 when there is no more."""
        try:
            data = os.read(descriptor, _READ)
        except BlockingIOError:
            return 0
        if not data:
            self._selector.unregister(descriptor)
        self._streams[descriptor].feed(data)
        return len(data)

    def _hear(self) -> None:
        try:
            data = self._control.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._control)
        *lines, rest = (bytes(self._said) + data).split(b"\n")
        self._said = bytearray(rest[:_MOST_SAID])
        for line in lines:
            word, _, why = line.decode("utf-8", "replace").partition(" ")
            if word == READY:
                self.ready = True
            elif word == FAILED:
                self.failed = why
            elif word == GONE:
                self.gone = why

    @property
    def ending(self) -> bool:
        """Whether it has closed its files: it is about to end, or has ended."""
        return self._control not in self._selector.get_map()

    def finish(self) -> None:
        """Lets it end when nothing comes from the stages before any more."""
        with suppress(OSError):
            self._control.send(b"\0")

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        """Kills it, and what it has started in its session."""
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def ended(self) -> str | None:
        """How it ended, in words, once it has. Nothing of it is left then."""
        if not _dead(self._process):
            return None
        self.kill()  # what it has started; until it is reaped no other process has its number
        status = self._process.wait()
        self._close()
        if status < 0:
            return f"killed by signal {_signal(-status)}"
        return f"exit status {status}"

    def _close(self) -> None:
        registered = self._selector.get_map()
        if self._control in registered:
            self._hear()
        if self._control in registered:
            self._selector.unregister(self._control)
        self._control.close()
        for descriptor, lines in self._streams.items():
            left = _MOST_REST
            while left > 0 and descriptor in registered and (read := self._read(descriptor)):
                left -= read
            if descriptor in registered:
                self._selector.unregister(descriptor)
            lines.finish()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


def _dead(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended. It is left to be reaped, where the system can say so without reaping it."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # the program ignores SIGCHLD, so that the kernel reaps
        return True


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
