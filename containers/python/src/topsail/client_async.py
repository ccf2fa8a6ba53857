"""The client for programs with an event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from .admin.awaited import AwaitedNouns
from .client import Client
from .client_answers import Learned, Prediction
from .client_errors import Timeout
from .client_http import Deadline
from .client_requests import Feedback

T = TypeVar("T")


class AsyncClient(AwaitedNouns):
    """A Client whose calls are awaited. The arguments and answers are the same.

        async with topsail.AsyncClient("http://127.0.0.1:1337") as client:
            answers = await asyncio.gather(*(client.predict("wine", x) for x in wines))
            apps = [app async for app in client.apps.list()]

    The work is done by threads of its own, at most `concurrency`; calls beyond that wait, within their time. A call
    that is cancelled returns at once, while its thread goes on until the answer or the call's time is up. A stream, as
    `events()`, takes a thread while it is waited for.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        admin_url: str | None = None,
        key: str | None = None,
        timeout: float = 10.0,
        ca_file: str | None = None,
        verify: bool | ssl.SSLContext = True,
        concurrency: int = 32,
    ) -> None:
        self._client = Client(url, admin_url=admin_url, key=key, timeout=timeout, ca_file=ca_file, verify=verify)
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="topsail-client")
        super().__init__(self._client, self._run, self._threads)

    async def predict(
        self,
        app: str,
        input: Any,
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        timeout: float | None = None,
    ) -> Prediction:
        """See Client.predict."""
        options = {"user": user, "context": context, "version": version, "salt": salt}
        return await self._run(timeout, self._client.predict, app, input, explain=explain, no_cache=no_cache, **options)

    async def predict_batch(
        self,
        app: str,
        inputs: Iterable[Any],
        *,
        user: str | int | None = None,
        context: str | int | None = None,
        version: str | None = None,
        explain: bool = False,
        salt: str | int | None = None,
        no_cache: bool = False,
        timeout: float | None = None,
    ) -> list[Prediction]:
        """See Client.predict_batch."""
        options = {"user": user, "context": context, "version": version, "salt": salt}
        return await self._run(
            timeout, self._client.predict_batch, app, inputs, explain=explain, no_cache=no_cache, **options
        )

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
        about = {"query_id": query_id, "input": input, "user": user, "context": context, "feedback_id": feedback_id}
        return await self._run(timeout, self._client.feedback, app, label, reward=reward, **about)

    async def feedback_batch(
        self, app: str, items: Iterable[Feedback], *, timeout: float | None = None
    ) -> list[Learned]:
        """See Client.feedback_batch."""
        return await self._run(timeout, self._client.feedback_batch, app, items)

    async def health(self, *, timeout: float | None = None) -> bool:
        """See Client.health."""
        return await self._run(timeout, self._client.health)

    async def close(self) -> None:
        """Ends streams, waits for the calls under way, then ends threads and connections."""
        self._close_streams()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        self._client.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"topsail.Async{repr(self._client).removeprefix('topsail.')}"

    async def _run(self, timeout: float | None, method: Callable[..., T], *args: Any, **options: Any) -> T:
        """The time for a thread counts too."""
        deadline = Deadline(self._timeout if timeout is None else timeout)
        call = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: method(*args, timeout=deadline.left(), **options)
        )
        try:
            return await asyncio.wait_for(call, deadline.left() + _GRACE)
        except asyncio.TimeoutError:
            raise Timeout("no thread was free in time: a larger concurrency has more of them") from None


_GRACE = 0.1  # seconds in which a thread says itself that its time is up, and why
