"""The client for event loops: the same calls, side by side."""

import asyncio
import json
import resource
import threading
import time

import pytest
from gateway import ANSWER, CLOSE, HANG, LEARNED, Gateway, Live
from sidecar import PATIENCE

import topsail


@pytest.fixture
def gateway():
    gateway = Gateway()
    yield gateway
    gateway.stop()


def run(gateway, use, **options):
    async def main():
        async with topsail.AsyncClient(gateway.url, **options) as client:
            return await use(client)

    return asyncio.run(main())


def test_many_at_once(gateway):
    async def use(client):
        return await asyncio.gather(*(client.predict("app", [i]) for i in range(50)))

    assert len(run(gateway, use, concurrency=8)) == 50
    assert sorted(b["input"][0] for b in gateway.bodies()) == list(range(50))
    assert len({h.client for h in gateway.heard}) <= 8


def test_time_counts_from_the_call(gateway):
    """Also while no connection is free."""
    gateway.always = HANG

    async def use(client):
        slow = asyncio.create_task(client.predict("app", [1], timeout=10 * PATIENCE))
        while not gateway.heard:
            await asyncio.sleep(0.001)
        with pytest.raises(topsail.Timeout, match="in time; more than 1 calls were under way"):
            await client.predict("app", [2], timeout=0.05)
        assert not slow.done()
        slow.cancel()

    run(gateway, use, concurrency=1)
    assert len(gateway.heard) == 1


def test_time_is_for_all_attempts_together(gateway, clock):
    """The first takes most of it, so that the second has half a second, and gets no answer."""
    later = {"error": "Unavailable", "cause": "later"}
    gateway.say((503, later, ("Retry-After", "39"), ("Connection", "close")))
    gateway.always = HANG

    async def use(client):
        with pytest.raises(topsail.Unavailable, match="later"):
            await client.predict("app", [1], timeout=39.5)

    run(gateway, use)
    limits = [h.headers["X-Timeout-Ms"] for h in gateway.heard]
    assert limits in (["39250", "450"], ["39250"])  # the second may not be heard on a slow machine


def test_a_cancelled_call_frees_its_connection_at_once(gateway):
    """The server sees it close, and the next call finds the only connection free."""
    gateway.say(HANG)

    async def use(client):
        task = asyncio.create_task(client.predict("app", [1], timeout=100 * PATIENCE))
        while not gateway.heard:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not gateway.closed:
            await asyncio.sleep(0.001)
        assert gateway.closed == [gateway.heard[0].client]
        assert (await client.predict("app", [1])).output == 1

    run(gateway, use, concurrency=1)


def test_turns_that_are_given_up(gateway):
    """By calls whose time ends while they wait, or that are cancelled, also together with their turn."""
    gateway.say(HANG)

    async def use(client):
        slow = asyncio.create_task(client.predict("app", [0], timeout=100 * PATIENCE))
        while not gateway.heard:
            await asyncio.sleep(0.001)
        for timeout in (0, 0.01):
            with pytest.raises(topsail.Timeout, match="more than 1 calls were under way"):
                await client.predict("app", [1], timeout=timeout)
        late = asyncio.create_task(client.predict("app", [1]))
        await asyncio.sleep(0)
        next(iter(client._gateway._connections._turns)).set_exception(TimeoutError())
        late.cancel()
        waiting = [asyncio.create_task(client.predict("app", [i])) for i in (2, 3, 4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        slow.cancel()
        await asyncio.sleep(0)  # it ends, and gives its turn to the second
        waiting[1].cancel()
        assert (await waiting[2]).output == 1
        assert (await client.predict("app", [5])).output == 1
        ended = await asyncio.gather(slow, late, *waiting[:2], return_exceptions=True)
        assert [type(e) for e in ended] == [asyncio.CancelledError] * 4
        assert client._gateway._connections._free == 1

    run(gateway, use, concurrency=1)
    assert [b["input"] for b in gateway.bodies()] == [[0], [4], [5]]


def test_a_stream_that_is_not_read_stops_its_server(gateway):
    """What it has sent is bounded, and all of it comes once it is read."""
    live, size = Live(), 40 * (1 << 20)
    gateway.say(live)

    async def use(client):
        live.part("a")
        parts = client.stream("app", 1)
        assert await anext(parts) == "a"
        connection = parts._flow._stream._connection
        live.part("b" * size)
        live.end()
        while connection._unread <= 1 << 20:
            await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        assert connection._unread < 2 << 20
        assert [len(part) async for part in parts] == [size]

    run(gateway, use)


class Holding:
    """A server in the loop of the test, which starts no threads. It holds each request until `enough` are there, and
    answers events and logs by what goes on."""

    def __init__(self, enough: int = 1) -> None:
        self.enough, self.here = enough, 0
        self.all = asyncio.Event()
        self.left = asyncio.Event()  # a client of a stream has closed its connection

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"/events" in head or b"/logs" in head:
                writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nevent: hello\ndata: {}\n\n")
                await reader.read()
                self.left.set()
                return
            self.here += 1
            if self.here >= self.enough:
                self.all.set()
            await self.all.wait()
            body = json.dumps(ANSWER).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
        finally:
            writer.close()


@pytest.fixture
def files():
    """As many as 2,000 connections take, at both ends."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(8192, before[0]), max(8192, before[1])))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_thousands_under_way(files):
    async def main():
        async with Holding(2000) as server, topsail.AsyncClient(server.url, timeout=PATIENCE) as client:
            threads = threading.active_count()
            asked = asyncio.gather(*(client.predict("app", [i]) for i in range(2000)))
            await asyncio.wait_for(server.all.wait(), PATIENCE)
            assert threading.active_count() <= threads
            assert len(await asked) == 2000

    asyncio.run(main())


def test_connections_leave_files_for_others(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 4096))

    async def main():
        async with Holding(40) as server, topsail.AsyncClient(server.url, timeout=PATIENCE) as client:
            asked = asyncio.gather(*(client.predict("app", [i]) for i in range(40)))
            while server.here < 32:
                await asyncio.sleep(0.001)
            for _ in range(100):
                await asyncio.sleep(0)
            assert server.here == 32
            server.all.set()
            assert len(await asked) == 40

    asyncio.run(main())


def test_streams_without_threads():
    async def main():
        async with Holding() as server, topsail.AsyncClient(server.url, admin_url=server.url) as client:
            threads = threading.active_count()
            events, logs = client.events(), client.replicas.logs("r", follow=True)
            assert await anext(events) == ("hello", {})
            assert [await anext(logs) for _ in range(3)] == ["event: hello", "data: {}", ""]
            waiting = [asyncio.ensure_future(s.__anext__()) for s in (events, logs)]
            assert (await client.predict("app", [1])).output == 1
            assert threading.active_count() <= threads
            waiting[0].cancel()
            await asyncio.wait_for(server.left.wait(), PATIENCE)  # the cancelled one has closed its connection
            await logs.aclose()
            for end in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(end, (asyncio.CancelledError, StopAsyncIteration))

    asyncio.run(main())


def test_a_connection_that_was_closed_while_the_loop_was_busy(gateway):
    """Feedback that may not be sent twice is not lost on it."""
    gateway.always = 200, LEARNED

    async def use(client):
        for n in range(1, 10):
            gateway.say(CLOSE)
            await client.feedback("app", 0, input=[1])
            while len(gateway.closed) < n:
                time.sleep(0.001)  # the loop does not turn

    run(gateway, use)
    assert len(gateway.heard) == 9


def test_closing_waits_for_what_is_under_way(gateway):
    async def main():
        client = topsail.AsyncClient(gateway.url)
        asked = asyncio.create_task(client.predict("app", [1]))
        await asyncio.sleep(0)
        await client.close()
        assert (await asked).output == 1
        with pytest.raises(RuntimeError, match="this client is closed"):
            await client.predict("app", [1])

    asyncio.run(main())


def test_one_loop_after_the_other(gateway):
    client = topsail.AsyncClient(gateway.url)

    async def use():
        return (await client.predict("app", [1])).output

    async def used_elsewhere():
        await use()
        with pytest.raises(RuntimeError, match="in another event loop, which is not closed"):
            await asyncio.to_thread(asyncio.run, use())
        await client.close()

    assert asyncio.run(use()) == 1
    asyncio.run(used_elsewhere())


def test_no_calls_at_all_are_too_few():
    with pytest.raises(ValueError, match="concurrency is at least 1"):
        topsail.AsyncClient(concurrency=0)


def test_the_plain_client_works_inside_an_event_loop(gateway):
    """As in a notebook, whose cells run in one."""

    async def cell():
        with topsail.Client(gateway.url) as client:
            return client.predict("app", [1]).output

    assert asyncio.run(cell()) == 1
