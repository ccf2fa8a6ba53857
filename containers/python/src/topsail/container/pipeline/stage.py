"""One stage of a pipeline: what runs it, what it takes, and how its workers are fed."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from .. import source
from ..settings import SettingsError

INPUT = "input"  # among the sources of a stage: the query's input
MAX_WORKERS = 64
_MAX_BATCH = 65536
_MAX_QUEUE = 65536
_MAX_DELAY = 1_000_000  # microseconds
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_STRATEGIES = ("none", "fixed", "aimd", "quantile")


class PipelineError(SettingsError):
    """The pipeline makes no sense; the text says what to change."""


class StageError(Exception):
    """In a pipeline inside one program: a stage could not be loaded, or a worker ended with inputs on its hands."""


@dataclass(frozen=True)
class Batching:
    """How the inputs of a stage come together in batches."""

    strategy: str = "none"  # lists of one; "fixed", "aimd" or "quantile"
    max_size: int = 0  # for "fixed" the size; else 0: no cap
    delay_micros: int = 0  # that a batch may wait to fill, from its first input on
    pad: bool = False  # for "fixed": smaller batches are filled up to the size

    @property
    def most(self) -> int:
        """The most inputs that a batch can have."""
        return 1 if self.strategy == "none" else self.max_size or _MAX_BATCH


@dataclass(frozen=True)
class Stage:
    name: str
    sources: tuple[str, ...]  # whose outputs it takes: names of stages, or INPUT
    served: Any = field(default=None, repr=False)  # a function, class or object; None: `code` says it
    code: str = ""  # "module:name"
    workers: int = 1  # processes
    cpus: tuple[int, ...] = ()  # of its workers, in turn; empty: any
    cpus_per_worker: int = 1  # how many of them each gets
    batch: Batching = Batching()
    max_queue: int = 0  # inputs that wait before it; 0: 1024
    idempotent: bool = False  # an input whose worker died may be given to another one, once

    def cpus_of(self, index: int) -> set[int]:
        """The CPUs of a worker; none where it runs on any."""
        first = index * self.cpus_per_worker
        return (
            {self.cpus[i % len(self.cpus)] for i in range(first, first + self.cpus_per_worker)} if self.cpus else set()
        )

    def find(self) -> Any:
        """What runs it, imported where only its name is known."""
        return source.find(self.code) if self.served is None else self.served

    def check(self, before: Collection[str]) -> None:
        """It raises PipelineError for what is wrong by itself or behind the stages `before`."""
        if problem := self._problem(before):
            raise PipelineError(f"stage {self.name!r}: {problem}")

    def _problem(self, before: Collection[str]) -> str | None:
        if not _NAME.fullmatch(self.name):
            return "use a name of 1 to 63 letters, digits, '_' or '-', beginning with a letter or digit"
        if self.name in (*before, INPUT):
            return f"there is another one of this name; {INPUT!r} is that of the query's input"
        for index, name in enumerate(self.sources):
            if name not in (*before, INPUT):
                return f"after names {name!r}, which is not a stage before it"
            if name in self.sources[:index]:
                return f"after names {name!r} twice"
        if not 1 <= self.workers <= MAX_WORKERS:
            return f"workers must be between 1 and {MAX_WORKERS}"
        if any(cpu < 0 for cpu in self.cpus):
            return "cpus must be numbers of CPUs, from 0 on"
        if self.cpus_per_worker < 1 or self.cpus_per_worker > max(1, len(self.cpus)):
            return "cpus_per_worker must be between 1 and the number of cpus"
        if not 0 <= self.max_queue <= _MAX_QUEUE:
            return f"max_queue must be between 1 and {_MAX_QUEUE}"
        return _batch_problem(self.batch)


def _batch_problem(batch: Batching) -> str | None:
    if batch.strategy not in _STRATEGIES:
        return f"batch strategy {batch.strategy!r} is unknown: use 'none', 'fixed', 'aimd' or 'quantile'"
    if batch.strategy == "fixed" and not batch.max_size:
        return "batch strategy 'fixed' needs a size"
    if batch.pad and batch.strategy != "fixed":
        return "batch pad needs strategy 'fixed', whose size it fills batches up to"
    if not 0 <= batch.max_size <= _MAX_BATCH:
        return f"the size of a batch must be between 1 and {_MAX_BATCH}"
    if not 0 <= batch.delay_micros <= _MAX_DELAY:
        return "the delay of a batch must be between 0 and 1 s"
    return None
