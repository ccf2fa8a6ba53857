"""A sidecar for tests: plain sockets, one real container process."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from topsail.container.encoding import encode
from topsail.container.input_type import DOUBLES
from topsail.protocol import announce, bye, feedback, frame, hello, payload, predict, reply, report
from topsail.protocol.constants import NO_DEADLINE, Kind, Role, State
from topsail.protocol.cursor import Cursor
from topsail.protocol.feedback import Feedback
from topsail.protocol.frame import Assembler
from topsail.protocol.hello import Hello
from topsail.protocol.predict import Input

HERE = Path(__file__).parent
PATIENCE = 60.0  # seconds after which a test has failed; nothing waits for as long as this when all is well


class Peer:
    """The sidecar's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(PATIENCE)
        self.assembler = Assembler()
        self.frames: list = []
        self.hello: Hello | None = None

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_) -> None:
        self.sock.close()

    def send(self, kind: int, body: bytes = b"", flags: int = 0) -> None:
        self.sock.sendall(frame.encode(kind, body, flags))

    def next(self):
        """The next frame of any kind; None at the end of the connection."""
        while not self.frames:
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.frames = list(self.assembler.feed(data))
        return self.frames.pop(0)

    def expect(self, kind: int, skip: tuple[int, ...] = (Kind.PING, Kind.METRICS)):
        """The body of the next frame, which must be of this kind; frames to skip come at any time. A PING, as it comes
        when a model takes long to load, is answered."""
        while (f := self.next()) is not None and f.kind in skip and f.kind != kind:
            if f.kind == Kind.PING:
                with suppress(OSError):  # the container may have ended meanwhile
                    self.send(Kind.PONG, bytes(f.body))
        assert f is not None, f"the container closed the connection instead of sending {kind!r}"
        assert f.kind == kind, f"{kind!r} was expected, and {Kind(f.kind)!r} came: {bytes(f.body)!r}"
        return f.body

    def greet(self, **changes) -> Hello:
        self.hello = hello.decode(self.expect(Kind.HELLO))
        self.send(Kind.HELLO, Hello(**({"role": Role.SIDECAR} | changes)).encode())
        return self.hello

    def announced(self):
        [entry] = announce.decode(self.expect(Kind.ANNOUNCE))
        return entry

    def wait_ready(self):
        """What is announced once it is ready. A quick model may be loaded before the connection is there."""
        while (entry := self.announced()).state != State.READY:
            assert entry.state == State.LOADING
        return entry

    def ready(self) -> Peer:
        """Shakes hands and waits until the container is ready."""
        self.greet()
        self.wait_ready()
        return self

    def ask(self, *values, batch: int = 1, model: int = 1, kind=DOUBLES, left: int = NO_DEADLINE) -> None:
        inputs = [Input(left, [kind.value(v)]) for v in values]
        self.send(Kind.PREDICT, predict.encode(batch, model, inputs))

    def teach(self, *pairs, user: str = "", model: int = 1) -> None:
        entries = [Feedback([DOUBLES.value(x)], payload.decode(Cursor(memoryview(encode(y)))), user) for x, y in pairs]
        self.send(Kind.FEEDBACK, feedback.encode(model, entries))

    def answer(self):
        """The entries of the next reply, by input."""
        got = reply.decode(self.expect(Kind.REPLY))
        self.batch = got.batch
        assert all(e.last for e in got.entries)
        return sorted(got.entries, key=lambda e: e.index)

    def predict(self, *values, **options) -> list:
        """Outputs as float64 numbers or texts; errors as (status, message)."""
        self.ask(*values, **options)
        return [_seen(e) for e in self.answer()]

    def metrics(self):
        return {s.name: s for s in report.decode(self.expect(Kind.METRICS))}

    def reason(self) -> str:
        return bye.decode(self.expect(Kind.BYE))


def _seen(entry):
    if entry.status:
        return entry.status, entry.message
    [value] = entry.values
    return struct.unpack("<d", value.data)[0] if value.dtype == 5 else str(value.data, "utf-8")


class Container:
    """A container process, and the port at which it looks for its sidecar."""

    def __init__(self, folder: Path, *command: str, **environ: str) -> None:
        self.folder = folder
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        self.errors = folder / "stderr"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=HERE,
                env=environment()
                | {
                    "TOPSAIL_SIDECAR": f"127.0.0.1:{self.port}",
                    "TOPSAIL_MODEL": "test",
                    "TOPSAIL_VERSION": "1",
                    "TOPSAIL_INPUT_TYPE": "doubles",
                    "TOPSAIL_REPLICA": "replica-1",
                    "TEST_FOLDER": str(folder),
                }
                | environ,
                stderr=errors,
            )

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_) -> None:
        self.listener.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def port(self) -> int:
        return self.listener.getsockname()[1]

    def accept(self) -> Peer:
        return Peer(self.listener.accept()[0])

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def ends(self) -> int:
        return self.process.wait(PATIENCE)

    def said(self) -> str:
        return self.errors.read_text()

    def wait_to_hear(self, text: str) -> None:
        """Until the container has said this."""
        until = time.monotonic() + PATIENCE
        while text not in self.said():
            assert time.monotonic() < until, f"the container never said {text!r}: {self.said()}"
            time.sleep(0.001)

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    def wait_for(self, name: str) -> None:
        """Until the model has made this file."""
        until = time.monotonic() + PATIENCE
        while not (self.folder / name).exists():
            assert time.monotonic() < until, f"the model never made {name}: {self.said()}"
            time.sleep(0.001)


def quiet(peer: Peer) -> bool:
    """Whether nothing has come from the container that was not read."""
    return not peer.frames and not select.select([peer.sock], [], [], 0)[0]


def environment() -> dict[str, str]:
    """The environment of a child: none of a surrounding Topsail, and numpy kept away if the suite runs without it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TOPSAIL_")}
    path = [str(HERE.parent / "src")]
    if os.environ.get("TOPSAIL_TEST_NO_NUMPY"):
        path.insert(0, str(HERE / "without_numpy"))
    return kept | {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
