"""A gateway for tests of the clients: a real HTTP server that says what it is told, and keeps what it heard."""

from __future__ import annotations

import atexit
import functools
import json
import queue
import select
import shutil
import ssl
import subprocess
import tempfile
import threading
from collections import deque
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

ANSWER = {"query_id": 7, "output": 1, "default": False}
LEARNED = {"received": True, "query_id": 7, "joined": "record", "duplicate": False, "loss": 0, "trained": [{}]}
CUT, HANG, TRICKLE, CLOSE = "cut", "hang", "trickle", "close"  # instead of an answer


@functools.cache
def certificate() -> Path:
    """A file with a new certificate of 127.0.0.1 and its key, until the process ends."""
    folder = tempfile.mkdtemp(prefix="topsail-tls-")
    atexit.register(shutil.rmtree, folder)
    file = Path(folder, "gateway.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-noenc",
        "-days",
        "1",
    ]
    command += [
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(file),
        "-out",
        str(file) + ".cert",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=30)  # openssl is needed for the tests of TLS
    file.write_bytes(file.read_bytes() + Path(str(file) + ".cert").read_bytes())
    return file


class Heard(NamedTuple):
    method: str
    path: str
    headers: Any
    body: Any
    client: tuple[str, int]


class Live:
    """An answer in parts. The client gets each event when a test sends it."""

    def __init__(self) -> None:
        self.next: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.left = threading.Event()  # the client has closed the connection before the end

    def part(self, output: Any, **more: Any) -> None:
        self.event({"output": output, **more})

    def end(self, answer: Any = ANSWER) -> None:
        self.event(answer, "end")
        self.next.put(b"")

    def cut(self, cause: str) -> None:
        self.event({"error": "Answer cut", "cause": cause}, "error")
        self.next.put(b"")

    def event(self, data: Any, kind: str = "") -> None:
        self.next.put((f"event: {kind}\n" * bool(kind) + f"data: {json.dumps(data)}\n\n").encode())


class Gateway:
    """Answers with what was queued by `say`, then with `always`."""

    def __init__(self, tls: bool = False, listening: bool = True) -> None:
        self.heard: list[Heard] = []
        self.closed: list[Any] = []  # addresses of clients whose connections are closed
        self.always: Any = (200, ANSWER)
        self._next: deque[Any] = deque()
        self.ending = threading.Event()
        gateway = self

        class Handler(_Handler):
            owner = gateway

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def process_request_thread(self, request: Any, client_address: Any) -> None:
                super().process_request_thread(request, client_address)
                gateway.closed.append(client_address)

            def handle_error(self, *_: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.server_bind()
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate())
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' * tls}://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        if listening:
            self.listen()

    def listen(self) -> None:
        self.server.server_activate()
        self._thread.start()

    def say(self, *answers: Any) -> None:
        self._next.extend(answers)

    def next(self) -> Any:
        return self._next.popleft() if self._next else self.always

    def bodies(self) -> list[Any]:
        return [h.body for h in self.heard]

    def stop(self) -> None:
        self.ending.set()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: Gateway
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        heard = Heard(self.command, self.path, self.headers, json.loads(body or b"null"), self.client_address)
        self.owner.heard.append(heard)
        answer = self.owner.next()
        if answer in (CUT, HANG, TRICKLE):
            self._misbehave(answer)
        elif answer == CLOSE:
            self._answer(*self.owner.always)
            self.close_connection = True  # without a word about it, as a gateway does with idle connections
        elif isinstance(answer, Live):
            self._live(answer)
        else:
            self._answer(*answer)

    def _live(self, answer: Live) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not self._left() and not self.owner.ending.is_set():
            with suppress(queue.Empty):
                data = answer.next.get(timeout=0.005)
                if data is CUT:
                    self.close_connection = True
                    return
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                if not data:
                    return
        answer.left.set()
        self.close_connection = True

    def _answer(self, status: int, body: Any, *headers: tuple[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers or [("Content-Length", str(len(data)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _misbehave(self, how: str) -> None:
        self.close_connection = True
        if how == HANG:
            while not (self.owner.ending.wait(0.005) or self._left()):
                pass
        elif how == TRICKLE:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not self.owner.ending.wait(0.01):
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return

    def _left(self) -> bool:
        """Whether the client has closed the connection; else it sends nothing here."""
        return bool(select.select([self.connection], [], [], 0)[0])

    def log_message(self, *_: Any) -> None:
        pass
