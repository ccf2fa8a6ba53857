"""One connection to a sidecar, from HELLO to BYE."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from ..protocol import bye, frame, hello, memory
from ..protocol.constants import Feature, Kind, Role
from ..protocol.errors import ProtocolError
from ..protocol.frame import Assembler, Frame
from ..protocol.hello import Hello
from ..protocol.memory import Memory, Shared
from .shared_memory import SharedMemory

_log = logging.getLogger("topsail")
_TIMEOUT = 5.0  # seconds for dialling, for the HELLO, and for a send that does not move
_LINGER = 0.2  # seconds for the sidecar to read a BYE before the socket is closed


def _some(count: int) -> int:
    if not count:
        raise ConnectionError("the sidecar closed the connection")
    return count


class HandshakeRefused(ConnectionError):
    """The sidecar said BYE instead of HELLO; the text is its reason."""


class Connection:
    """Frames over a socket. One thread receives; any thread may send. Only the receiving thread closes the socket, so
    that no other can meet a reused descriptor: the others break_off."""

    def __init__(self, sock: socket.socket) -> None:
        self.broken = False
        self.max_frame = 0  # what the sidecar accepts, known after open
        self.features = Feature(0)  # that both sides offered, known after open
        self.stages = False  # whether Feature.STAGES is among them: asked for each batch, and slow to find
        self.parts = False  # whether Feature.PARTS is
        self._sock = sock
        self._sending = threading.Lock()  # held for one whole frame
        self._assembler = Assembler()
        self._memory: SharedMemory | None = None  # with large frames
        self._early: list[Frame] = []  # frames that came together with the HELLO

    @classmethod
    def open(cls, address: tuple[str, int], mine: Hello) -> Connection:
        """Dials and shakes hands. It raises OSError (HandshakeRefused is one) or ProtocolError."""
        sock = socket.create_connection(address, timeout=_TIMEOUT)
        connection = cls(sock)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(frame.encode(Kind.HELLO, mine.encode()))
            connection._shake_hands(mine)
            sock.setblocking(False)
        except ProtocolError as e:
            connection.close(reason=str(e))
            raise
        except BaseException:
            connection.close()
            raise
        return connection

    def _shake_hands(self, mine: Hello) -> None:
        first, rest = self._first_frame(time.monotonic() + _TIMEOUT)
        if first.kind == Kind.BYE:
            raise HandshakeRefused(f"the sidecar refused this container: {bye.decode(first.body)}")
        if first.kind != Kind.HELLO:
            raise ProtocolError("frame kind", 4, f"{first.kind} came before HELLO")
        theirs = hello.decode(first.body)
        if theirs.role != Role.SIDECAR:
            raise ProtocolError("hello role", 5, f"{theirs.role} is not that of a sidecar")
        self.max_frame = theirs.max_frame
        self.features = Feature(mine.features & theirs.features)
        self.stages = Feature.STAGES in self.features
        self.parts = Feature.PARTS in self.features
        self._assembler.compressed_allowed = Feature.LZ4 in self.features
        self._early = list(rest)

    def _first_frame(self, until: float) -> tuple[Frame, Iterator[Frame]]:
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("the sidecar did not say HELLO")
            self._sock.settimeout(left)
            frames = self.receive()
            if first := next(frames, None):
                return first, frames

    def fileno(self) -> int:
        return self._sock.fileno()

    def early(self) -> list[Frame]:
        """The frames that came with the HELLO, once."""
        early, self._early = self._early, []
        return early

    def receive(self) -> Iterator[Frame]:
        """Reads once and yields the frames that this completes. It raises OSError when the connection has ended."""
        assembler = self._assembler
        try:
            if assembler.room is not None:
                return assembler.filled(_some(self._sock.recv_into(assembler.room)))
            data = self._sock.recv(frame.READ)
        except BlockingIOError:  # a spurious wakeup
            return iter(())
        _some(len(data))
        return assembler.feed(data)

    def share(self, offered: Memory) -> None:
        """Opens the memory that the sidecar offers. Where that cannot be done, large frames come through the socket."""
        try:
            shared = SharedMemory(offered)
        except OSError as e:
            _log.debug("the sidecar's memory cannot be shared: %s", e)
            return
        self._memory = shared
        self.send(b"")

    def shared(self, where: Shared) -> Frame:
        """The frame that is in the memory."""
        if self._memory is None:
            raise ProtocolError("shared slot", 4, "there is no shared memory")
        return self._memory.frame(where)

    def send(self, data: bytes | bytearray) -> bool:
        """Sends whole frames, or breaks the connection and returns False. What shared memory is free goes with them."""
        try:
            with self._sending:
                if self.broken:
                    return False
                if self._memory and (slots := self._memory.free()):
                    data = frame.encode(Kind.FREE, memory.encode_free(slots)) + data
                self._send(data)
        except OSError:
            self.break_off()
            return False
        return True

    def _send(self, data: bytes | bytearray) -> None:
        """It does not ask first whether there is room, since there nearly always is."""
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._send_rest(memoryview(data)[sent:])

    def _send_rest(self, rest: memoryview) -> None:
        """The time is for each piece, and would be for all of them with sendall: a large reply to a slow reader takes
        longer."""
        self._sock.settimeout(_TIMEOUT)
        try:
            while rest:
                rest = rest[self._sock.send(rest) :]
        finally:
            self._sock.setblocking(False)

    def say_bye(self, reason: str) -> None:
        """Says BYE and that nothing follows. Reading on until the sidecar closes keeps what was sent from being lost:
        closing with unread bytes would reset the connection."""
        self.send(frame.encode(Kind.BYE, bye.encode(reason)))
        self._shutdown(socket.SHUT_WR)

    def break_off(self) -> None:
        """Ends the connection for both directions, which wakes the receiving thread."""
        self.broken = True
        self._shutdown(socket.SHUT_RDWR)

    def close(self, reason: str = "") -> None:
        """For the receiving thread. With a reason it says BYE first, and gives the sidecar a moment to read it."""
        if reason:
            self.say_bye(reason)
            self._read_out()
        self.break_off()
        with self._sending:  # a send in another thread ends first, so that it cannot hit a reused descriptor
            self._sock.close()

    def _read_out(self) -> None:
        until = time.monotonic() + _LINGER
        with suppress(OSError):  # it is over either way
            while (left := until - time.monotonic()) > 0:
                self._sock.settimeout(left)
                if not self._sock.recv(1 << 16):
                    return

    def _shutdown(self, how: int) -> None:
        with suppress(OSError):  # the other side was faster
            self._sock.shutdown(how)
