"""Server-sent events."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .errors import ServerError

EVENT_STREAM = "text/event-stream"


class Event(NamedTuple):
    kind: str  # hello, catalog, replicas, traffic, decision, audit or cluster of management; message without a name
    data: Any  # of the JSON


class EventReader:
    """Fields in lines, an empty line after each event, comments that begin with a colon."""

    def __init__(self) -> None:
        self._kind, self._data = "message", list[bytes]()

    def __call__(self, line: bytes) -> Event | None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)
        elif not line:
            kind, data = self._kind, self._data
            self._kind, self._data = "message", []
            if data:
                return Event(kind, _json(b"\n".join(data)))
        return None


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ServerError(f"an event is not JSON: {data[:100]!r}") from None
