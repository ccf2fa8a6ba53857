"""A sidecar that passes queries from stage to stage: queues, lists and threads, and no more."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue

from sidecar import PATIENCE, Peer

from topsail.container.input_type import DOUBLES, InputType
from topsail.protocol import announce, bye, predict, reply
from topsail.protocol.constants import NO_DEADLINE, Kind, State, Status
from topsail.protocol.payload import Value
from topsail.protocol.predict import Input
from topsail.protocol.reply import Entry

_TICK = 0.002


class Query(Future):
    """Its result is the last Entry."""

    def __init__(self, values: list[Value]) -> None:
        super().__init__()
        self.values = {"input": values}  # by where they come from
        self.lock = threading.Lock()  # guards values
        self.tries: dict[str, int] = {}  # by stage

    def end(self, entry: Entry) -> None:
        with self.lock:
            if not self.done():
                self.set_result(entry)


class Coordinator:
    """Takes the workers that come to a listener, until it is closed."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.stages: list[dict] = []  # of the pipeline, as they are announced
        self.workers: list[Worker] = []  # all that ever came
        self._queues: dict[str, SimpleQueue[Query]] = {}
        self._lock = threading.Lock()  # guards all else
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, *_) -> None:
        self._closed = True
        self.listener.close()
        for worker in self.workers:
            worker.peer.sock.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                worker = Worker(self, Peer(self.listener.accept()[0]))
                threading.Thread(target=worker.run, daemon=True).start()

    def joined(self, worker: Worker, entry: announce.Announced) -> None:
        """A worker has announced itself."""
        with self._lock:
            stages = json.loads(entry.pipeline)
            assert self.stages in ([], stages)
            self.stages = stages
            if worker not in self.workers:
                self.workers.append(worker)
            self._queues.setdefault(entry.stage, SimpleQueue())

    def ready(self, count: int) -> list[Worker]:
        """The workers that are ready, once there are so many."""
        until = time.monotonic() + PATIENCE
        while len(found := [w for w in self.workers if w.ready and not w.left]) != count:
            assert time.monotonic() < until, f"{len(found)} workers are ready, not {count}"
            time.sleep(_TICK)
        return found

    @property
    def answers(self) -> int:
        """Of all workers that ever came."""
        return sum(w.answered for w in list(self.workers))

    @property
    def gone(self) -> int:
        """How many workers have gone."""
        return sum(w.left for w in list(self.workers))

    def ask(self, value, kind: InputType = DOUBLES) -> Query:
        query = Query([kind.value(value)])
        self._pass_on(query, "input")
        return query

    def sources(self, stage: dict) -> list[str]:
        at = self.stages.index(stage)
        return stage.get("after") or [self.stages[at - 1]["name"] if at else "input"]

    def _pass_on(self, query: Query, source: str) -> None:
        """Queues the query at the stages for which this was the last thing missing."""
        for stage in self.stages:
            sources = self.sources(stage)
            with query.lock:
                complete = source in sources and all(s in query.values for s in sources)
            if complete:
                self._queues[stage["name"]].put(query)

    def take(self, stage: str, wait: float) -> list[Query]:
        """What a worker is to do next."""
        [described] = [s for s in self.stages if s["name"] == stage]
        batch = described.get("batch", {})
        most = 1 if batch.get("strategy", "none") == "none" else batch.get("max_size") or 64
        taken = []
        with suppress(Empty):
            while len(taken) < most:
                query = self._queues[stage].get(timeout=wait) if not taken else self._queues[stage].get_nowait()
                if not query.done():
                    taken.append(query)
        return taken

    def payload(self, stage: str, query: Query) -> list[Value]:
        [described] = [s for s in self.stages if s["name"] == stage]
        sources = self.sources(described)
        if len(sources) == 1:
            return query.values[sources[0]]
        return [query.values[s][0]._replace(name=s) for s in sources]

    def answered(self, stage: str, query: Query, entry: Entry) -> None:
        if entry.status != Status.OK or stage == self.stages[-1]["name"]:
            query.end(entry)
            return
        with query.lock:
            query.values[stage] = entry.values
        self._pass_on(query, stage)

    def lost(self, stage: str, query: Query) -> None:
        """The worker died over it."""
        [described] = [s for s in self.stages if s["name"] == stage]
        query.tries[stage] = query.tries.get(stage, 0) + 1
        if described.get("idempotent") and query.tries[stage] == 1:
            self._queues[stage].put(query)
        else:
            query.end(Entry(0, Status.CONTAINER_FAILED, True, message=f"stage {stage}: the worker is gone"))


class Worker:
    """The sidecar's end of one worker's connection."""

    def __init__(self, coordinator: Coordinator, peer: Peer) -> None:
        self.coordinator = coordinator
        self.peer = peer
        self.stage = ""
        self.ready = False
        self.left = False
        self.draining = False
        self.reason = ""
        self.answered = 0
        self._batches = 0
        self._running: list[Query] = []

    def run(self) -> None:
        try:
            self.peer.greet(features=2)
            while not self.reason:
                self._step()
        except (OSError, AssertionError, ValueError):
            pass  # it died
        finally:
            self.left = True
            for query in self._running:
                self.coordinator.lost(self.stage, query)
            self.peer.sock.close()

    def _step(self) -> None:
        busy = bool(self._running) or not self.ready or self.draining
        if self.peer.frames or select.select([self.peer.sock], [], [], _TICK if busy else 0)[0]:
            self._handle(self.peer.next())
        elif not busy and (queries := self.coordinator.take(self.stage, _TICK)):
            self._batches += 1
            self._running = queries
            inputs = [Input(NO_DEADLINE, self.coordinator.payload(self.stage, q)) for q in queries]
            self.peer.send(Kind.PREDICT, predict.encode(self._batches, 1, inputs))

    def _handle(self, f) -> None:
        assert f is not None, "it closed the connection"
        if f.kind == Kind.ANNOUNCE:
            [entry] = announce.decode(f.body)
            self.stage = entry.stage
            self.coordinator.joined(self, entry)
            self.ready = entry.state == State.READY
        elif f.kind == Kind.REPLY:
            self._take(reply.decode(f.body), bool(f.flags & 2))
        elif f.kind == Kind.PING:
            self.peer.send(Kind.PONG, bytes(f.body))
        elif f.kind == Kind.DRAIN:
            self.draining = True
        elif f.kind == Kind.BYE:
            self.reason = bye.decode(f.body)

    def _take(self, got: reply.Decoded, end: bool) -> None:
        assert got.batch == self._batches
        for entry in got.entries:
            self.coordinator.answered(self.stage, self._running[entry.index], entry)
        self.answered += len(got.entries)
        if end:
            self._running = []
