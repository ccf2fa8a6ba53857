"""Models that say where their queries are."""

import asyncio
import threading

from here import passed
from sidecar import PATIENCE

from topsail.protocol.constants import Status

CANCELLED = (Status.CANCELLED, "the query was cancelled")


class Watched:
    """Says where its queries are; they stay there until `go_on`."""

    def __init__(self):
        self.begun, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.saw = None
        self.calls = []
        self.places = threading.Semaphore(0)  # released by each query that runs


class Generator(Watched):
    def predict(self, x):
        self.calls.append(x)
        self.places.release()
        try:
            while True:
                yield "a"
                self.begun.set()
                assert passed(self.go_on)
        except BaseException as e:
            self.saw = type(e)
            raise
        finally:
            self.ended.set()


class AsyncGenerator(Watched):
    async def predict(self, x):
        self.calls.append(x)
        self.places.release()
        try:
            yield "a"
            self.begun.set()
            await asyncio.sleep(PATIENCE)
        except BaseException as e:
            self.saw = type(e)
            raise
        finally:
            self.ended.set()


class Yielding(Watched):
    """Never waits for anything."""

    async def predict(self, x):
        try:
            while True:
                self.begun.set()
                yield "a"
        except BaseException as e:
            self.saw = type(e)
            raise
        finally:
            self.ended.set()


class Coroutine(Watched):
    async def predict(self, x):
        try:
            self.begun.set()
            await asyncio.sleep(PATIENCE)
        except BaseException as e:
            self.saw = type(e)
            raise
        finally:
            self.ended.set()


class Function(Watched):
    concurrent = 4

    def predict(self, x):
        self.calls.append(x)
        self.places.release()
        self.begun.set()
        assert passed(self.go_on)
        return x
