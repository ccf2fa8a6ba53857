"""How many calls AsyncClient makes, beside aiohttp by itself."""

import asyncio
import statistics
import subprocess
import sys
import time

import pytest
from sidecar import PATIENCE

import topsail

SERVER = """
import asyncio

BODY = b'{"query_id":4503599627370496,"output":1.5,"default":false}'
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(BODY)

class Quick(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        if data.endswith(b"}"):  # a small query comes whole, or its head and then its body
            self.transport.write(HEAD + BODY)

async def main():
    server = await asyncio.get_running_loop().create_server(Quick, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
BODY = {"input": [i / 7 for i in range(13)], "no_cache": True}


@pytest.fixture
def url():
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        server.kill()


async def rate(ask, at_once=128, seconds=1.0):
    """Calls per second."""
    began = time.perf_counter()

    async def work():
        count = 0
        while time.perf_counter() < began + seconds:
            await ask()
            count += 1
        return count

    counts = await asyncio.gather(*(work() for _ in range(at_once)))
    return sum(counts) / (time.perf_counter() - began)


async def of_client(url):
    async with topsail.AsyncClient(url, timeout=PATIENCE) as client:
        return await rate(lambda: client.predict("app", BODY["input"], no_cache=True))


async def of_aiohttp(url):
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask():
            async with session.post(f"{url}/app/predict", json=BODY) as answer:
                return await answer.json()

        return await rate(ask)


@pytest.mark.bars
def test_calls_beside_those_of_aiohttp(url):
    ratios = [asyncio.run(of_client(url)) / asyncio.run(of_aiohttp(url)) for _ in range(7)]
    print(*(f"{r:.2f}" for r in ratios))
    assert statistics.median(ratios) >= 0.9
