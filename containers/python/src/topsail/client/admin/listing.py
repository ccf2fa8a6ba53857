"""Lists that come in pages."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Generic

from ..channel import Channel
from ..errors import ServerError
from ..http import Answer
from . import call
from .base import R


class Pages(Generic[R]):
    """A list, of which a page is asked for when none of the last is left."""

    def __init__(
        self, channel: Channel, path: str, kind: type[R], query: dict[str, Any], timeout: float | None
    ) -> None:
        self._channel, self._path, self._kind, self._query, self._timeout = channel, path, kind, query, timeout
        self._items: deque[R] = deque()
        self._last = False

    async def next(self) -> R:
        """It raises StopAsyncIteration at the end, and once it is closed."""
        while not self._items:
            if self._last:
                raise StopAsyncIteration
            await self._channel.send(call.get(self._path, self._take, **self._query), self._timeout)
        return self._items.popleft()

    def close(self) -> None:
        self._items.clear()
        self._last = True

    def _take(self, answer: Answer) -> None:
        page = json.loads(answer.body)
        items, cursor = [self._kind.of(item) for item in page["items"]], str(page.get("next") or "")
        if cursor and cursor == self._query.get("cursor"):
            raise ServerError(f"the management service gives the same page of {self._path} again and again")
        self._query = self._query | {"cursor": cursor}
        self._items.extend(items)
        self._last = not cursor
