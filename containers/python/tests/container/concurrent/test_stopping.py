"""What comes of queries that run when their container ends."""

import threading

import pytest
from here import FEATURES, Here, Sidecar, passed
from sidecar import PATIENCE, quiet
from watched import CANCELLED, AsyncGenerator, Function, Generator

from topsail.container.concurrent import runner
from topsail.protocol.constants import Kind, Status


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A model that is torn down waits for its threads for a second only."""
    monkeypatch.setattr(runner, "_PATIENCE", PATIENCE)


@pytest.mark.parametrize("kind", [Function, Generator])
def test_queries_that_run_are_finished_when_it_stops(kind):
    class Model(kind):
        def teardown(self):
            assert self.calls == ["x"]
            self.calls.append("teardown")

    model = Model()
    with Here(model) as here, here.accept() as peer:
        peer.query("x", parts=False)
        assert model.places.acquire(timeout=PATIENCE)
        here.container.stop()
        peer.expect(Kind.DRAIN)
        peer.query("y", batch=2)
        assert peer.last() == (Status.DRAINING, "this container is stopping")
        model.go_on.set()
        if kind is Function:
            assert peer.last() == "x"
        else:
            peer.cancel()  # which it hears, too
            assert peer.last() == CANCELLED
        assert peer.reason() == "stopped"
        here.ends()
    assert model.calls == ["x", "teardown"]
    assert not [t for t in threading.enumerate() if t.name.startswith("topsail-predict")]


def test_the_sidecar_may_go_before_the_queries_have_ended():
    model = AsyncGenerator()
    with Here(model) as here, here.accept() as peer:
        peer.query("x")
        assert passed(model.begun)
        here.container.stop()
        peer.part()
        peer.expect(Kind.DRAIN)
        peer.send(Kind.BYE, b"\0\0")
        here.ends()
    assert passed(model.ended)
    assert not [t for t in threading.enumerate() if t.name == "topsail-event-loop"]


@pytest.mark.parametrize("make_async", [False, True])
def test_exit_in_the_model_ends_the_container(make_async):
    def predict(x):
        raise SystemExit(7)
        yield

    async def predict_async(x):
        raise SystemExit(7)

    with Here(predict_async if make_async else predict) as here, here.accept() as peer:
        peer.query("x")
        here.ends()
        assert isinstance(here.raised, SystemExit) and here.raised.code == 7


def test_a_real_process_finishes_its_queries_on_sigterm(start):
    container = start("streamed", TOPSAIL_INPUT_TYPE="strings")
    with Sidecar(container.listener.accept()[0]) as peer:
        peer.greet(features=FEATURES)
        assert peer.wait_ready().concurrency == 64
        peer.query("x")
        assert peer.part() == "first "
        container.terminate()
        peer.expect(Kind.DRAIN)
        container.touch("go on")
        assert peer.all() == ["second", "first second"]
        assert peer.reason() == "stopped"
    assert container.ends() == 0
    assert (container.folder / "closed").exists()


def test_a_second_signal_does_not_wait_for_queries(start):
    container = start("streamed", TOPSAIL_INPUT_TYPE="strings")
    with Sidecar(container.listener.accept()[0]) as peer:
        peer.greet(features=FEATURES)
        peer.wait_ready()
        peer.query("x")
        assert peer.part() == "first "
        container.terminate()
        peer.expect(Kind.DRAIN)
        while quiet(peer):  # one signal more may come before Python has looked at the first
            container.terminate()
        assert peer.reason() == "stopped"
    assert container.ends() == 0
