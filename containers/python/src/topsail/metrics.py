"""Metrics of model code: counters, gauges and histograms, which the sidecar shows beside its own.

    misses = topsail.counter("feature_cache_misses", "Lookups that went to disk.", table="users")
    misses.inc()

All are safe to use from any thread. The same name and labels give the same metric.
"""

from __future__ import annotations

import logging
import re
import threading
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, TypeVar

from .protocol import report
from .protocol.report import Series

_log = logging.getLogger("topsail")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,199}")
_MAX_SERIES = 1000  # a label with a value per user must not fill the memory of everyone who collects metrics
_MAX_BUCKETS = 100
_MAX_LABEL = 200  # characters of a label's value

DEFAULT_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]


class Metric:
    """One metric with one set of labels. Its lock guards its numbers."""

    def __init__(self, registry: Registry, name: str, help: str, labels: Labels) -> None:
        self.name = name
        self.help = help
        self.labels = labels
        self._registry = registry
        self._lock = threading.Lock()
        self._value = 0.0

    def series(self) -> Series:
        raise NotImplementedError


class Counter(Metric):
    """A total that only grows."""

    def inc(self, amount: float = 1) -> None:
        if amount < 0:
            raise ValueError(f"counter {self.name} cannot go down by {-amount}: use a gauge")
        with self._lock:
            self._value += amount
        self._registry.changed = True

    def series(self) -> Series:
        return Series(report.COUNTER, self.name, self.labels, self.help, self._value)


class Gauge(Metric):
    """A number that goes up and down."""

    def set(self, value: float) -> None:
        with self._lock:
            self._value = float(value)
        self._registry.changed = True

    def inc(self, amount: float = 1) -> None:
        with self._lock:
            self._value += amount
        self._registry.changed = True

    def dec(self, amount: float = 1) -> None:
        self.inc(-amount)

    def series(self) -> Series:
        return Series(report.GAUGE, self.name, self.labels, self.help, self._value)


class Histogram(Metric):
    """How often values fell into which range."""

    def __init__(self, registry: Registry, name: str, help: str, labels: Labels, bounds: tuple[float, ...]) -> None:
        super().__init__(registry, name, help, labels)
        self.bounds = bounds
        self._counts = [0] * (len(bounds) + 1)

    def observe(self, value: float) -> None:
        index = bisect_left(self.bounds, value)
        with self._lock:
            self._counts[index] += 1
            self._value += value
        self._registry.changed = True

    def series(self) -> Series:
        with self._lock:
            counts, total = list(self._counts), self._value
        buckets, below = [], 0
        for bound, count in zip(self.bounds, counts, strict=False):
            below += count
            buckets.append((bound, below))
        return Series(report.HISTOGRAM, self.name, self.labels, self.help, total, sum(counts), tuple(buckets))


M = TypeVar("M", bound=Metric)


class Registry:
    """The metrics of one process. `changed` says that there is something to report."""

    def __init__(self) -> None:
        self.changed = False
        self._lock = threading.Lock()  # guards _metrics
        self._metrics: dict[tuple[str, Labels], Metric] = {}
        self._full = False  # which was said

    def get(self, kind: type[M], name: str, help: str, labels: dict[str, Any], *more: Any) -> M:
        key = (name, _check(name, labels))
        with self._lock:
            found = self._metrics.get(key)
            if found is None:
                found = kind(self, *key[:1], help, key[1], *more)
                if len(self._metrics) < _MAX_SERIES:
                    self._metrics[key] = found
                elif not self._full:
                    self._full = True
                    _log.warning(
                        "metric %s %s is not reported, nor is any other new one: there are %d already; use labels of "
                        "few values",
                        *key,
                        _MAX_SERIES,
                    )
        if not isinstance(found, kind):
            raise ValueError(f"metric {name!r} is a {type(found).__name__.lower()} already")
        return found

    def report(self) -> list[Series]:
        """All totals, and a mark that they were taken. A change during the call is reported next time."""
        self.changed = False
        with self._lock:
            metrics = list(self._metrics.values())
        return [m.series() for m in metrics]


def _check(name: str, labels: dict[str, Any]) -> Labels:
    for n in (name, *labels):
        if not _NAME.fullmatch(n):
            raise ValueError(f"{n!r} cannot name a metric or label: use letters, digits and '_'")
    return tuple(sorted((key, str(value)[:_MAX_LABEL]) for key, value in labels.items()))


# Metrics belong to the process, as the model does: one container serves one model.
REGISTRY = Registry()


def counter(name: str, help: str = "", /, **labels: Any) -> Counter:
    """A total that only grows: `.inc(n)`."""
    return REGISTRY.get(Counter, name, help, labels)


def gauge(name: str, help: str = "", /, **labels: Any) -> Gauge:
    """A number that goes up and down: `.set(x)`, `.inc(n)`, `.dec(n)`."""
    return REGISTRY.get(Gauge, name, help, labels)


def histogram(name: str, help: str = "", /, *, buckets: Iterable[float] = DEFAULT_BUCKETS, **labels: Any) -> Histogram:
    """How values are spread: `.observe(x)`. `buckets` are the upper bounds of the ranges, in the unit of x; they suit
    seconds unless said otherwise."""
    bounds = tuple(sorted({float(b) for b in buckets if float(b) != float("inf")}))
    if not 1 <= len(bounds) <= _MAX_BUCKETS:
        raise ValueError(f"histogram {name!r} needs 1 to {_MAX_BUCKETS} buckets")
    return REGISTRY.get(Histogram, name, help, labels, bounds)
