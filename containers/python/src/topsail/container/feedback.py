"""Feedback on its way from the link's thread to the main thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ..protocol.feedback import Feedback
from ..protocol.payload import Value

_MOST_BYTES = 4 << 20  # of what waits
_MOST_AT_ONCE = 256  # entries of one call of correct, so that no batch waits for long
_OVERHEAD = 500  # bytes, about, that Python takes for an entry


class FeedbackQueue:
    """Holds feedback by user, in the order of arrival. What comes while it is full is dropped."""

    def __init__(self) -> None:
        self.dropped = 0  # in total
        self._lock = threading.Lock()  # guards all else
        self._waiting: dict[str, list[Feedback]] = {}  # the user that waits longest first
        self._bytes = 0

    def put(self, entries: Iterable[Feedback]) -> None:
        """Copies what it takes in, because a view would keep a whole message in memory."""
        with self._lock:
            for entry in entries:
                size = _size(entry)
                if self._bytes + size > _MOST_BYTES:
                    self.dropped += 1
                    continue
                self._bytes += size
                self._waiting.setdefault(entry.user, []).append(_own(entry))

    def take(self) -> list[Feedback]:
        """Some feedback of one user; empty when none waits."""
        with self._lock:
            for user, entries in self._waiting.items():
                taken, rest = entries[:_MOST_AT_ONCE], entries[_MOST_AT_ONCE:]
                del self._waiting[user]
                if rest:
                    self._waiting[user] = rest  # behind the other users
                self._bytes -= sum(map(_size, taken))
                return taken
            return []

    @property
    def empty(self) -> bool:
        return not self._waiting


def _size(entry: Feedback) -> int:
    return _OVERHEAD + len(entry.user) + sum(len(v.data) for v in (*entry.input, *entry.label))


def _own(entry: Feedback) -> Feedback:
    return entry._replace(input=[_copy(v) for v in entry.input], label=[_copy(v) for v in entry.label])


def _copy(value: Value) -> Value:
    return value._replace(data=bytes(value.data))
