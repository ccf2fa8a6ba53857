"""The client for programs with an event loop."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from . import requests
from .admin.connection import Admin
from .admin.resources import Resources
from .answers import Learned, Prediction
from .channel import Channel
from .connections import Connections
from .event_loop import LoopConnections, connect, sleep
from .items import AsyncItems
from .parts import AsyncParts
from .requests import Feedback
from .target import Target, targets


class AsyncClient(Resources):
    """A Client whose calls are awaited. The arguments and answers are the same, those of the resources too; lists and
    streams are read by `async for`.

        async with topsail.AsyncClient("http://127.0.0.1:1337") as client:
            answers = await asyncio.gather(*(client.predict("wine", x) for x in wines))
            apps = [app async for app in client.apps.list()]

    At most `concurrency` calls to the gateway, and as many to the management service, are under way at once, each on a
    connection, and no more than half of the files that the process may open; calls beyond that wait, within their time.
    A call that is cancelled closes its connection at once. A client belongs to the event loop in which it is first
    used, until that is closed.
    """

    # Of Resources, awaited.
    apps: Any
    models: Any
    versions: Any
    replicas: Any
    artifacts: Any
    streams: Any
    keys: Any
    system: Any
    decisions: Any
    audit: Any
    usage: Any
    events: Any

    def __init__(
        self,
        url: str | None = None,
        *,
        admin_url: str | None = None,
        key: str | None = None,
        timeout: float = 10.0,
        ca_file: str | None = None,
        verify: bool | ssl.SSLContext = True,
        concurrency: int = 2048,
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        gateway, management = targets(url, admin_url, key, timeout, ca_file, verify)
        most = min(concurrency, _files() // 2)
        self._gateway, self._management = _channel(gateway, most), _channel(management, most)
        super().__init__(Admin(self._management, lambda awaited: awaited, AsyncItems))

    async def predict(
        self,
        app: str,
        input: Any,
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        candidate_models: Sequence[str] | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> Prediction:
        """See Client.predict."""
        options: dict[str, Any] = {"user": user, "context": context, "version": version, "salt": salt}
        options |= {"explain": explain or None, "no_cache": no_cache or None, "priority": priority}
        options |= {"candidate_models": candidate_models}
        return await self._gateway.send(requests.predict(app, input, options), timeout)

    def stream(
        self,
        app: str,
        input: Any,
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        candidate_models: Sequence[str] | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> AsyncParts:
        """See Client.stream: `async for part in client.stream("chat", "hello")`."""
        options: dict[str, Any] = {"user": user, "context": context, "version": version, "salt": salt}
        options |= {"explain": explain or None, "no_cache": no_cache or None, "priority": priority}
        options |= {"candidate_models": candidate_models}
        return AsyncParts(self._gateway.parts(requests.predict(app, input, options), timeout))

    async def predict_batch(
        self,
        app: str,
        inputs: Iterable[Any],
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        candidate_models: Sequence[str] | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        priority: int | None = None,
        timeout: float | None = None,
    ) -> list[Prediction]:
        """See Client.predict_batch."""
        options: dict[str, Any] = {"user": user, "context": context, "version": version, "salt": salt}
        options |= {"explain": explain or None, "no_cache": no_cache or None, "priority": priority}
        options |= {"candidate_models": candidate_models}
        return await self._gateway.send(requests.predict_batch(app, inputs, options), timeout)

    async def feedback(
        self,
        app: str,
        label: Any = None,
        *,
        reward: float | None = None,
        query_id: int | None = None,
        input: Any = None,
        user: str | int | None = None,
        context: str | int | None = None,
        feedback_id: str | int | None = None,
        timeout: float | None = None,
    ) -> Learned:
        """See Client.feedback."""
        item = {"label": label, "reward": reward, "query_id": query_id, "feedback_id": feedback_id}
        item |= {"input": input, "user": user, "context": context}
        return await self._gateway.send(requests.feedback(app, item), timeout)

    async def feedback_batch(
        self, app: str, items: Iterable[Feedback], *, timeout: float | None = None
    ) -> list[Learned]:
        """See Client.feedback_batch."""
        return await self._gateway.send(requests.feedback_batch(app, items), timeout)

    async def health(self, *, timeout: float | None = None) -> bool:
        """See Client.health."""
        return await self._gateway.send_once(requests.health(), timeout)

    @property
    def url(self) -> str:
        """Of the gateway."""
        return str(self._gateway).rstrip("/")

    async def close(self) -> None:
        """Ends streams, waits for the calls under way, then closes the connections."""
        try:
            await self._gateway.close()
        finally:
            await self._management.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"topsail.AsyncClient({str(self._gateway)!r})"


def _channel(target: Target, most: int) -> Channel:
    dial = partial(connect, target.host, target.port, target.tls)
    new = partial(Connections, target.url, target.shown, dial, most)
    return Channel(target, LoopConnections(target.url, new, most), sleep)


def _files() -> int:
    """How many this process may open."""
    try:
        import resource
    except ImportError:  # as on Windows
        return 16_384
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else max(soft, 2)
