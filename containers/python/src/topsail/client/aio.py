"""The client for programs with an event loop."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from .admin.connection import Admin
from .admin.resources import Resources
from .channel import Channel
from .connections import Connections
from .event_loop import LoopConnections, connect, sleep
from .items import AsyncItems
from .parts import AsyncParts
from .sync import Client
from .target import Target, targets

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(call: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The same call, of a client that gives what is to be awaited."""

    @wraps(call)
    async def awaited(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        coroutine: Any = call(self, *arguments, **options)
        answer: T = await coroutine
        return answer

    return awaited


def _giving(kind: type[T], call: Callable[Concatenate[Any, P], Any]) -> Callable[Concatenate[Any, P], T]:
    """The same call, of a client that gives this kind."""
    return call


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

    _given, _parts = staticmethod(lambda coroutine: coroutine), AsyncParts

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
        super().__init__(Admin(self._management, self._given, AsyncItems))

    predict = _awaited(Client.predict)
    stream = _giving(AsyncParts, Client.stream)
    predict_batch = _awaited(Client.predict_batch)
    feedback = _awaited(Client.feedback)
    feedback_batch = _awaited(Client.feedback_batch)
    health = _awaited(Client.health)

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
