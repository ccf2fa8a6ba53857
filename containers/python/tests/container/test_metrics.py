"""Metrics of model code."""

import threading

import pytest
from clock import Clock

import topsail
from topsail.container import reporter
from topsail.metrics import _MAX_SERIES, Counter, Gauge, Histogram, Registry
from topsail.protocol import report
from topsail.protocol.report import COUNTER, GAUGE, HISTOGRAM, Series


@pytest.fixture
def registry(monkeypatch):
    registry = Registry()
    monkeypatch.setattr("topsail.metrics.REGISTRY", registry)
    return registry


def test_counter_gauge_and_histogram(registry):
    topsail.counter("hits", "Hits.", kind="a").inc()
    topsail.counter("hits", "Hits.", kind="a").inc(2)
    topsail.counter("hits", "Hits.", kind="b").inc(5)
    topsail.gauge("depth").set(4)
    topsail.gauge("depth").dec()
    spread = topsail.histogram("seconds", "How long.", buckets=[1, 0.1], step="x")
    for value in (0.05, 0.1, 0.5, 7):
        spread.observe(value)
    assert registry.report() == [
        Series(COUNTER, "hits", (("kind", "a"),), "Hits.", 3.0),
        Series(COUNTER, "hits", (("kind", "b"),), "Hits.", 5.0),
        Series(GAUGE, "depth", (), "", 3.0),
        Series(HISTOGRAM, "seconds", (("step", "x"),), "How long.", 7.65, 4, ((0.1, 2), (1.0, 3))),
    ]


def test_changed_is_said_once(registry):
    hits = topsail.counter("hits")
    assert not registry.changed
    hits.inc()
    assert registry.changed
    registry.report()
    assert not registry.changed


def test_labels_are_one_metric_in_any_order(registry):
    assert topsail.counter("n", a=1, b="x") is topsail.counter("n", b="x", a="1")


@pytest.mark.parametrize("name", ["", "with space", "9lives", "a-b", "ä"])
def test_names_are_checked(registry, name):
    with pytest.raises(ValueError, match="cannot name a metric or label"):
        topsail.counter(name)
    with pytest.raises(ValueError, match="cannot name a metric or label"):
        topsail.counter("fine", **{name: 1})


def test_one_name_is_one_kind(registry):
    topsail.counter("n")
    with pytest.raises(ValueError, match="'n' is a counter already"):
        topsail.gauge("n")


def test_a_counter_does_not_go_down(registry):
    with pytest.raises(ValueError, match="use a gauge"):
        topsail.counter("n").inc(-1)


def test_buckets_are_bounded(registry):
    for buckets in ([], range(101)):
        with pytest.raises(ValueError, match="needs 1 to 100 buckets"):
            topsail.histogram("h", buckets=buckets)


def test_series_are_bounded(registry, caplog):
    for i in range(_MAX_SERIES + 10):
        topsail.counter("users", user=i).inc()  # works for the model, whether it is reported or not
    assert len(registry.report()) == _MAX_SERIES
    [said] = caplog.records  # and not a line for each query
    assert said.getMessage().startswith("metric users (('user', '1000'),) is not reported, nor is any other new one")


def test_threads(registry):
    def work():
        for _ in range(2000):
            topsail.counter("n").inc()
            topsail.histogram("h", buckets=[1]).observe(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    counter, histogram = registry.report()
    assert counter.value == 8000
    assert (histogram.observed, histogram.buckets) == (8000, ((1.0, 8000),))


def test_a_report_keeps_below_the_largest_frame():
    series = [Series(COUNTER, f"n{i}", (("label", "x" * 200),), "", i) for i in range(1000)]
    body, sent = report.encode(series, 65536)
    assert len(body) <= 65536
    assert report.decode(memoryview(body)) == series[:sent]
    assert sent > 200


class Sent:
    """A connection that keeps what is sent."""

    max_frame = 65536

    def __init__(self):
        self.frames = []

    def send(self, data):
        self.frames.append(data)


def test_what_changed_is_reported_at_most_once_a_second(registry, monkeypatch):
    clock, sent = Clock(), Sent()
    monkeypatch.setattr(reporter, "time", clock)
    hits, reports = topsail.counter("hits"), reporter.Reporter(registry)

    def after(seconds):
        clock.now += seconds
        reports.send_if_due(sent)
        return len(sent.frames)

    assert after(0) == 0  # nothing has changed
    hits.inc()
    assert after(0) == 1
    hits.inc()
    assert [after(0.5), after(0.25)] == [1, 1]
    assert [after(0.25), after(5)] == [2, 2]
    hits.inc()
    reports.send(sent)  # the last one, for which nothing is waited
    assert len(sent.frames) == 3


def test_types_are_public():
    assert (topsail.Counter, topsail.Gauge, topsail.Histogram) == (Counter, Gauge, Histogram)
