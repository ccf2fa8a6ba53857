"""Connections whose waits block, and what runs the client's coroutines over them without an event loop."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from .quiet import quiet

T = TypeVar("T")


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns all of whose waits block."""
    try:
        coroutine.send(None)
    except StopIteration as e:
        result: T = e.value
        return result
    coroutine.close()
    raise RuntimeError("this waits for an event loop")


async def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def connect(host: str, port: int, tls: ssl.SSLContext | None, seconds: float) -> BlockingConnection:
    sock = socket.create_connection((host, port), seconds)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return BlockingConnection(tls.wrap_socket(sock, server_hostname=host) if tls else sock)
    except BaseException:
        sock.close()
        raise


class BlockingConnection:
    """See Connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._receiving = threading.Lock()  # while one thread receives, no other gives the file back to the system

    async def send(self, pieces: Iterable[bytes], seconds: float) -> None:
        self._sock.settimeout(seconds)
        for piece in pieces:
            self._sock.sendall(piece)

    async def receive(self, seconds: float | None) -> bytes:
        with self._receiving:
            self._sock.settimeout(seconds)
            return self._sock.recv(1 << 16)

    def silent(self) -> bool:
        return quiet(self._sock.fileno())

    def close(self) -> None:
        with suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # that of TLS would be seen in the middle of receiving
        with self._receiving:
            self._sock.close()
