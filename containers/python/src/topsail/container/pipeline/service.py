"""A pipeline inside one program: worker processes for its stages, and a coordinator in the program's event loop, as in
"Service Batching from Scratch, Again" (Zepu Zhang, 2020)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

from ...output import BadInput, Drop, Error
from ...protocol.constants import Status
from ...protocol.payload import Value
from ...protocol.reply import Entry
from . import stage_codec
from .crew import CrewWorker, check_cpus, usable_cpus
from .stage import INPUT, PipelineError, Stage, StageError

_Payload = list[Value]


class _Query:
    """One input on its way."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.values: dict[str, _Payload] = {}  # by the stage that they come from
        self.again: set[str] = set()  # stages that it was given to a second time


class PipelineService:
    """What `Pipeline.serve` returns: an async context manager, whose `predict` may be called side by side."""

    def __init__(self, stages: Sequence[Stage], max_queue_size: int, cpus: Sequence[int]) -> None:
        """It raises PipelineError."""
        if max_queue_size < 1:
            raise PipelineError("max_queue_size must be at least 1")
        for stage in stages:
            check_cpus(stage.cpus)
        check_cpus(cpus)
        self._stages, self._cpus, self._most = stages, set(cpus), max_queue_size
        self._taking = {name: [s for s in stages if name in s.sources] for name in (INPUT, *(s.name for s in stages))}
        self._workers = [CrewWorker(s, i) for s in stages for i in range(s.workers)]
        self._ended = False

    async def __aenter__(self) -> PipelineService:
        """Returns when all workers are loaded. It raises StageError."""
        self._queues: dict[str, asyncio.Queue[_Query]] = {
            s.name: asyncio.Queue(s.max_queue or self._most) for s in self._stages
        }
        self._flying: set[_Query] = set()
        self._threads = ThreadPoolExecutor(len(self._workers), "topsail-pipeline")
        self._tasks: set[asyncio.Task[None]] = set()
        if self._cpus:
            self._cpus_before = usable_cpus()
            os.sched_setaffinity(0, self._cpus)
        try:
            await asyncio.gather(*(self._in_thread(w.start) for w in self._workers))
        except BaseException:  # also of who does not want to wait any more
            await self.__aexit__(None, None, None)
            raise
        for worker in self._workers:
            self._begin(self._feed(worker))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the workers. What is on its way fails."""
        self._ended = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(asyncio.to_thread(w.end) for w in self._workers))
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.shutdown()
        while self._flying:
            self._give_up()
            await asyncio.sleep(0)
        if self._cpus:
            os.sched_setaffinity(0, self._cpus_before)

    def _give_up(self) -> None:
        """Fails what is on its way, and makes room for what waits for that."""
        for query in self._flying:
            if not query.answer.done():
                query.answer.set_exception(StageError("the pipeline has ended"))
        for queue in self._queues.values():
            while not queue.empty():
                queue.get_nowait()

    async def predict(self, x: Any) -> Any:
        """The output of the last stage for an input. It waits while the queue of the first stage is full.

        It raises what ended the query, with the name of the stage: topsail.Error, BadInput, Drop, or StageError when
        the process of a worker ended.
        """
        if self._ended:
            raise StageError("the pipeline has ended")
        query = _Query()
        self._flying.add(query)
        try:
            await self._pass_on(query, INPUT, [stage_codec.value(x)])
            return await query.answer
        finally:
            self._flying.discard(query)

    async def _pass_on(self, query: _Query, source: str, payload: _Payload) -> None:
        """Gives a value to the stages that take it and now have all that they take."""
        query.values[source] = payload
        complete = [s for s in self._taking[source] if all(name in query.values for name in s.sources)]
        for stage in complete:
            await self._queues[stage.name].put(query)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Has work go on beside the caller's, until the pipeline ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _feed(self, worker: CrewWorker) -> None:
        """Gives a worker one batch after the other."""
        while True:
            batch = await self._batch(worker.stage)
            try:
                entries = await self._in_thread(worker.run, _payloads(worker.stage, batch))
            except StageError as e:
                self._failed(worker.stage, batch, e)
                await self._in_thread(worker.start_again)
                continue
            for query, entry in zip(batch, entries, strict=False):  # without what fills a batch up
                await self._took(worker.stage, query, entry)

    async def _batch(self, stage: Stage) -> list[_Query]:
        """The next inputs of a stage: what waits, and after the first one what comes within its delay. Without
        deadlines all strategies but a fixed size take whatever waits."""
        queue, loop = self._queues[stage.name], asyncio.get_running_loop()
        batch: list[_Query] = []
        most, until = min(stage.batch.most, self._most), 0.0
        while len(batch) < most:
            wait = until - loop.time()
            if not batch:
                query = await queue.get()
                until = loop.time() + stage.batch.delay_micros / 1e6
            elif not queue.empty():
                query = queue.get_nowait()
            elif wait > 0:
                try:
                    query = await asyncio.wait_for(queue.get(), wait)
                except asyncio.TimeoutError:
                    break
            else:
                break
            if not query.answer.done():  # else it has ended elsewhere, or was given up
                batch.append(query)
        return batch

    async def _took(self, stage: Stage, query: _Query, entry: Entry) -> None:
        if query.answer.done():
            return
        if entry.status != Status.OK:
            query.answer.set_exception(_failure(entry, stage))
        elif stage is self._stages[-1]:
            query.answer.set_result(stage_codec.read(entry.values[0]))
        else:
            await self._pass_on(query, stage.name, entry.values)

    def _failed(self, stage: Stage, batch: Sequence[_Query], why: StageError) -> None:
        for query in batch:
            if stage.idempotent and stage.name not in query.again:
                query.again.add(stage.name)
                self._begin(self._queues[stage.name].put(query))  # which may be full, and the caller takes from it
            elif not query.answer.done():
                query.answer.set_exception(StageError(f"stage {stage.name}: {why}"))

    async def _in_thread(self, call: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)


def _payloads(stage: Stage, batch: Sequence[_Query]) -> list[_Payload]:
    """The inputs of a batch, which is filled up where the stage wants that."""
    if len(stage.sources) == 1:
        payloads = [query.values[stage.sources[0]] for query in batch]
    else:
        payloads = [stage_codec.join({name: query.values[name] for name in stage.sources}) for query in batch]
    return payloads + payloads[:1] * (stage.batch.most - len(payloads)) if stage.batch.pad else payloads


def _failure(entry: Entry, stage: Stage) -> Exception:
    said = f"stage {stage.name}: {entry.message}"
    if entry.status == Status.BAD_INPUT:
        return BadInput(said)
    return Drop(said) if entry.status == Status.DROPPED else Error(said)
