"""Calls per second of the clients and of plain HTTP libraries, and what it takes to send an image.

    PYTHONPATH=src python benchmarks/clients.py TOPSAIL

TOPSAIL is the program (`go build -o bin/topsail ./cmd/topsail`), which is started with an app without models: it
answers at once, so what is measured is the client, on the same machine. It needs aiohttp, httpx, requests, numpy and
orjson. All send the same query of 13 doubles and read the answer. The rounds of all clients take turns, so that their
ratios count; what is printed is the median of five, and of the five ratios to aiohttp.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import httpx
import numpy as np
import requests

import topsail
from topsail.cli.table import table
from topsail.client import body

ROUNDS, SECONDS = 5, 0.7
AT_ONCE = (1, 32, 128)
INPUT = [14.23, 1.71, 2.43, 15.6, 127.0, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065.0]
BODY = {"input": INPUT, "no_cache": True}
CONFIG = """
data_dir = "{folder}/state"
[gateway]
addr = "127.0.0.1:{port}"
[web]
addr = "127.0.0.1:{web}"
[ops]
addr = "127.0.0.1:{ops}"
[log]
level = "error"
[[app]]
name = "quick"
input_type = "doubles"
default_output = "1"
latency_slo_micros = 100000
"""


def threads(ask: Callable[[], object], at_once: int) -> float:
    ends, counts = time.perf_counter() + SECONDS, [0] * at_once

    def work(i: int) -> None:
        while time.perf_counter() < ends:
            ask()
            counts[i] += 1

    workers = [threading.Thread(target=work, args=(i,)) for i in range(at_once)]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - began)


async def tasks(ask: Callable[[], Awaitable[object]], at_once: int) -> float:
    ends = time.perf_counter() + SECONDS

    async def work() -> int:
        count = 0
        while time.perf_counter() < ends:
            await ask()
            count += 1
        return count

    began = time.perf_counter()
    counts = await asyncio.gather(*(work() for _ in range(at_once)))
    return sum(counts) / (time.perf_counter() - began)


async def by_async_client(url: str, at_once: int) -> float:
    async with topsail.AsyncClient(url) as client:
        return await tasks(lambda: client.predict("quick", INPUT, no_cache=True), at_once)


async def by_aiohttp(url: str, at_once: int) -> float:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> object:
            async with session.post(f"{url}/quick/predict", json=BODY) as answer:
                return await answer.json()

        return await tasks(ask, at_once)


async def by_httpx(url: str, at_once: int) -> float:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, trust_env=False) as session:

        async def ask() -> object:
            return (await session.post(f"{url}/quick/predict", json=BODY)).json()

        return await tasks(ask, at_once)


async def by_client(url: str, at_once: int) -> float:
    with topsail.Client(url) as client:
        return threads(lambda: client.predict("quick", INPUT, no_cache=True), at_once)


async def by_requests(url: str, at_once: int) -> float:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=at_once))
        return threads(lambda: session.post(f"{url}/quick/predict", json=BODY).json(), at_once)


CLIENTS = {
    "aiohttp": by_aiohttp,
    "topsail.AsyncClient": by_async_client,
    "topsail.Client, threads": by_client,
    "httpx, tasks": by_httpx,
    "requests, threads": by_requests,
}


def calls(url: str) -> None:
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for at_once in AT_ONCE:
            for name, ask in CLIENTS.items():
                rates.setdefault((name, at_once), []).append(asyncio.run(ask(url, at_once)))
    head = ["calls/s (ratio to aiohttp)", *(f"{n} at once" for n in AT_ONCE)]

    def cell(name: str, n: int) -> str:
        ratios = [rate / of for rate, of in zip(rates[name, n], rates["aiohttp", n], strict=True)]
        return f"{statistics.median(rates[name, n]):.0f} ({statistics.median(ratios):.2f})"

    print(table(head, [[name, *(cell(name, n) for n in AT_ONCE)] for name in CLIENTS]))


def bodies() -> None:
    """An image of 224 x 224 x 3 as JSON, with orjson and without."""
    random = np.random.default_rng(1)
    image = random.random((224, 224, 3), np.float32).ravel()
    pixels = random.integers(0, 256, image.size, np.uint8)
    given = {
        "float32 as a list": image.tolist(),
        "float32": image,
        "float64": image.astype(float),
        "uint8": pixels,
        "bytes": pixels.tobytes(),
    }
    ways = {"orjson": body.orjson, "without": None}
    rows = []
    for name, value in given.items():
        row = [name]
        for library in ways.values():
            body.orjson = library
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                body.encoded({"input": value})
                times.append(time.perf_counter() - began)
            row.append(f"{statistics.median(times) * 1e3:.1f}")
        rows.append(row)
    body.orjson = ways["orjson"]
    print(table(["ms for 150,528 of them", *ways], rows))


def main(program: str) -> None:
    program = str(Path(program).resolve())  # it is started in another folder
    with tempfile.TemporaryDirectory() as folder:
        port = 21337
        config = Path(folder, "topsail.toml")
        config.write_text(CONFIG.format(folder=folder, port=port, web=port + 1, ops=port + 2))
        server = subprocess.Popen([program, "local", "--config", str(config)], cwd=folder)
        try:
            url = f"http://127.0.0.1:{port}"
            answers(url)
            calls(url)
        finally:
            server.terminate()
            server.wait(30)
    bodies()


def answers(url: str) -> None:
    """Waits until it does."""
    query = urllib.request.Request(
        f"{url}/quick/predict", b'{"input": [1]}', {"Content-Type": "application/json"}, method="POST"
    )
    for _ in range(200):
        try:
            with urllib.request.urlopen(query, timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the gateway does not answer")


if __name__ == "__main__":
    main(sys.argv[1])
