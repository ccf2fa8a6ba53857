"""A host loads beside predictions, and ends in order."""

import queue
import socket
import struct
import threading

import pytest
from hosting import GATED, SUM
from sidecar import PATIENCE

from topsail.container.connection import Connection
from topsail.container.requests import RequestQueue
from topsail.host import loader
from topsail.host.hosted_models import HostedModels
from topsail.protocol import load
from topsail.protocol.constants import Kind, State, Status
from topsail.protocol.load import Load
from topsail.runtime.failure import PermanentFailure


def test_predictions_go_on_while_a_model_loads(host):
    host.put("slow", {"model.py": GATED}, entry="model:Model")
    host.put("sum", {"model.py": SUM})
    sidecar = host.accept()
    good = sidecar.load("sum", version="2")
    sidecar.ask_for("slow")
    host.wait_for("loading")
    assert sidecar.predict(good, [1, 2]) == [3.0]
    sidecar.peer.send(Kind.PING, struct.pack("<Q", 5))
    assert struct.unpack("<Q", sidecar.peer.expect(Kind.PONG)) == (5,)
    host.touch("load")
    assert sidecar.answered().state == State.READY


def test_a_model_loads_while_another_computes(host):
    host.put("slow", {"model.py": GATED}, entry="model:Model")
    host.put("sum", {"model.py": SUM})
    host.touch("load")
    sidecar = host.accept()
    entry = sidecar.load("slow")
    sidecar.peer.ask([1.0], model=entry.id)
    host.wait_for("running")
    assert sidecar.load("sum", version="2").state == State.READY
    sidecar.peer.send(Kind.PING, struct.pack("<Q", 5))
    assert struct.unpack("<Q", sidecar.peer.expect(Kind.PONG)) == (5,)
    host.touch("run")
    [answer] = sidecar.peer.answer()
    assert answer.status == Status.OK


def test_a_model_is_closed_when_its_batch_is_answered(host):
    host.put("slow", {"model.py": GATED}, entry="model:Model")
    host.touch("load")
    sidecar = host.accept()
    entry = sidecar.load("slow")
    sidecar.peer.ask([1.0], model=entry.id)
    host.wait_for("running")
    sidecar.peer.send(Kind.UNLOAD, load.encode_unload(entry.id))
    assert not (host.folder / "closed").exists()
    host.touch("run")
    [answer] = sidecar.peer.answer()
    assert answer.status == Status.OK
    assert sidecar.answered().state == State.GONE
    assert (host.folder / "closed").exists()


def test_after_a_loss_nothing_is_loaded(host):
    host.put("slow", {"model.py": GATED}, entry="model:Model")
    host.put("sum", {"model.py": SUM})
    sidecar = host.accept()
    old = sidecar.load("sum", version="2")
    sidecar.ask_for("slow")
    host.wait_for("loading")
    sidecar.peer.sock.close()
    sidecar = host.accept()
    [(status, _)] = sidecar.predict(old, [1, 2])  # although it is still there: it was loaded for another
    assert status == Status.UNKNOWN_MODEL
    host.touch("load")
    [sidecar.host] = sidecar.announced()  # when it is loaded, of which this sidecar has not heard
    [sidecar.host] = sidecar.announced()  # when all was dropped
    assert (host.folder / "closed").exists()
    new = sidecar.load("sum", version="2")
    assert new.id > old.id
    assert sidecar.predict(new, [1, 2]) == [3.0]


def test_sigterm_finishes_the_batch_in_hand(host):
    host.put("slow", {"model.py": GATED}, entry="model:Model")
    host.touch("load")
    sidecar = host.accept()
    entry = sidecar.load("slow")
    sidecar.peer.ask([1.0], model=entry.id)
    host.wait_for("running")
    host.terminate()
    sidecar.peer.expect(Kind.DRAIN)
    host.touch("run")
    [answer] = sidecar.peer.answer()
    assert answer.status == Status.OK
    assert sidecar.peer.reason() == "stopped"
    assert host.ends() == 0
    assert (host.folder / "closed").exists()


def test_sigterm_does_not_wait_for_what_is_loading(host):
    host.put("slow", {"model.py": GATED}, entry="model:Model")
    sidecar = host.accept()
    sidecar.ask_for("slow")
    host.wait_for("loading")
    host.terminate()
    sidecar.peer.expect(Kind.DRAIN)
    assert sidecar.peer.reason() == "stopped"
    assert host.ends() == 0


def test_a_model_that_hangs_while_it_loads(monkeypatch):
    """The sidecar turns away at last, and then the host is of no use to anybody."""
    monkeypatch.setattr(loader, "_HANGS", -1.0)
    begun, go_on, orders = threading.Event(), threading.Event(), RequestQueue()

    class Bundles:
        def load(self, asked):
            begun.set()
            go_on.wait(PATIENCE)
            raise PermanentFailure("at last")

    answers = queue.SimpleQueue()
    mine = loader.Loader(Bundles(), HostedModels(), orders, lambda order, entry: answers.put(entry))
    mine.start()
    connection = Connection(socket.socketpair()[0])
    orders.put(Load("m", "1"), connection)
    begun.wait(PATIENCE)
    mine.check()  # the sidecar is patient
    connection.break_off()
    with pytest.raises(loader.LoaderStuck, match="m:1 has hung for 0 s, and holds up all that is to be loaded"):
        mine.check()
    go_on.set()
    assert answers.get(timeout=PATIENCE).reason == "at last"
    mine.stop()
    mine.check()
