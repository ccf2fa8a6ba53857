"""The client for event loops: the same calls, side by side."""

import asyncio
import time

import pytest
from gateway import ANSWER, HANG, LEARNED, Gateway

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


def test_every_call(gateway):
    async def use(client):
        said = {"user": "ann", "context": 3, "version": "2", "explain": True, "salt": 0, "no_cache": True}
        assert await client.predict("app", [1], **said) == topsail.Prediction(1, False, 7, raw=ANSWER)
        gateway.say((200, {"batch_predictions": [ANSWER]}))
        assert len(await client.predict_batch("app", [[1]], **said)) == 1
        gateway.say((200, LEARNED), (200, {"feedback": [LEARNED]}), (503, {"status": "draining"}))
        learned = await client.feedback("app", 0, query_id=7, input=[1], user="ann", context=3)
        assert learned.joined == "record"
        assert len(await client.feedback_batch("app", [{"query_id": 7, "reward": 1}])) == 1
        assert await client.health() is False
        with pytest.raises(topsail.BadRequest):
            await client.predict("app", None)
        assert "secret" not in repr(client)

    run(gateway, use, key="secret")
    said = {"uid": "ann", "context": 3, "version": "2", "explain": True, "salt": 0, "no_cache": True}
    assert gateway.bodies() == [
        {"input": [1]} | said,
        {"input_batch": [[1]]} | said,
        {"label": 0, "query_id": 7, "input": [1], "uid": "ann", "context": 3},
        {"feedback_batch": [{"query_id": 7, "reward": 1}]},
        None,
    ]
    assert {h.headers["Authorization"] for h in gateway.heard} == {"Bearer secret"}


def test_many_at_once(gateway):
    async def use(client):
        return await asyncio.gather(*(client.predict("app", [i]) for i in range(50)))

    assert len(run(gateway, use, concurrency=8)) == 50
    assert sorted(b["input"][0] for b in gateway.bodies()) == list(range(50))
    assert len({h.client for h in gateway.heard}) <= 8


def test_time_counts_from_the_call(gateway):
    """Also while no thread is free."""
    gateway.always = HANG

    async def use(client):
        slow = asyncio.create_task(client.predict("app", [1], timeout=1))
        while not gateway.heard:
            await asyncio.sleep(0.001)
        with pytest.raises(topsail.Timeout, match="no thread was free"):
            await client.predict("app", [2], timeout=0.05)
        assert not slow.done()
        with pytest.raises(topsail.Timeout, match="did not answer in time"):
            await slow

    run(gateway, use, concurrency=1)
    assert len(gateway.heard) == 1


def test_a_cancelled_call_returns_at_once(gateway):
    gateway.always = HANG

    async def use(client):
        task = asyncio.create_task(client.predict("app", [1], timeout=1))
        while not gateway.heard:
            await asyncio.sleep(0.001)
        task.cancel()
        start = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - start < 0.8
        gateway.always = 200, ANSWER
        assert (await client.predict("app", [1])).output == 1

    run(gateway, use)


def test_the_plain_client_works_inside_an_event_loop(gateway):
    """As in a notebook, whose cells run in one."""

    async def cell():
        with topsail.Client(gateway.url) as client:
            return client.predict("app", [1]).output

    assert asyncio.run(cell()) == 1
