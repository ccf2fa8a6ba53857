"""How a connection sends, over a socket whose time is the test's."""

from topsail.container import connection
from topsail.container.connection import Connection


class Slow:
    """A socket that is full at first, and whose reader then takes so many bytes every so many seconds."""

    def __init__(self, piece, seconds):
        self.piece, self.seconds = piece, seconds
        self.taken = bytearray()
        self.timeouts = []  # that were set
        self.ended = False

    def send(self, data):
        if not self.timeouts:
            raise BlockingIOError
        return self._take(data, self.timeouts[-1])

    def sendall(self, data):
        """Which has one time for all, as Python's."""
        left = self.timeouts[-1]
        while data:
            data = data[self._take(data, left) :]
            left -= self.seconds

    def _take(self, data, patience):
        if self.seconds > patience:
            raise TimeoutError
        self.taken += data[: self.piece]
        return len(data[: self.piece])

    def settimeout(self, seconds):
        self.timeouts.append(seconds)

    def setblocking(self, blocking):
        self.timeouts.append(None if blocking else 0.0)

    def shutdown(self, how):
        self.ended = True


def test_a_large_reply_may_take_its_time_as_long_as_it_moves():
    sock = Slow(piece=1000, seconds=connection._TIMEOUT - 1)
    data = bytes(range(250)) * 40
    assert Connection(sock).send(data)
    assert bytes(sock.taken) == data and not sock.ended
    assert sock.timeouts[-1] == 0.0  # for the thread that receives

    stuck = Slow(piece=1000, seconds=connection._TIMEOUT + 1)
    assert not Connection(stuck).send(data)
    assert stuck.ended and not stuck.taken
