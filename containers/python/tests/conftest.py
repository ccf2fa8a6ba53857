"""Lets the whole suite run as if numpy were not installed: TOPSAIL_TEST_NO_NUMPY=1 pytest."""

import os
import sys

import pytest

if os.environ.get("TOPSAIL_TEST_NO_NUMPY"):
    sys.modules["numpy"] = None  # type: ignore[assignment]  # which makes `import numpy` fail

    # Which are about nothing but numpy.
    collect_ignore = [
        "deploy/test_deploy_sklearn.py",
        "deploy/test_deploy_estimators.py",
        "container/pipeline/test_pipeline_examples.py",
        "runtime/test_matrix.py",
        "runtime/test_runtime_scores.py",
        "runtime/test_runtime_tensorflow.py",
    ]

os.environ["GIT_DIR"] = os.devnull  # what is checked out here is no model's

from clock import AwaitedClock, Clock
from sidecar import PATIENCE, Container


@pytest.fixture
def start(tmp_path):
    """Starts a container process with a model of models.py; it is gone when the test is over."""
    started = []

    def start(model, *arguments, **environ):
        started.append(Container(tmp_path, "-m", "topsail", f"models:{model}", *arguments, **environ))
        return started[-1]

    yield start
    for container in started:
        container.__exit__()


@pytest.fixture
def host(tmp_path):
    """A host of many models, as a process."""
    from hosting import Host

    with Host(tmp_path) as host:
        yield host


@pytest.fixture
def management():
    """A management service with a gateway beside; a request that the API's document does not allow fails the test."""
    from management import Management

    management = Management()
    yield management
    management.stop()
    assert management.breaches == []


@pytest.fixture
def client(management):
    """A client of both."""
    import topsail

    with topsail.Client(management.url, admin_url=management.url, timeout=PATIENCE) as client:
        yield client


@pytest.fixture(params=["Client", "AsyncClient"])
def connect(request):
    """Makes clients of either kind, which are used as one: what they do is the same."""
    from contextlib import ExitStack

    from awaiting import AwaitingClient

    import topsail

    kind = topsail.Client if request.param == "Client" else AwaitingClient
    with ExitStack() as made:
        yield lambda *arguments, **options: made.enter_context(kind(*arguments, **options))


@pytest.fixture
def clock(monkeypatch):
    """What deadlines of calls are counted by, and the waits between their attempts."""
    import topsail.client.blocking
    import topsail.client.deadline
    import topsail.client.event_loop
    import topsail.client.retry

    clock = Clock()
    for module in (topsail.client.blocking, topsail.client.deadline, topsail.client.retry):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(topsail.client.event_loop, "asyncio", AwaitedClock(clock))
    return clock
