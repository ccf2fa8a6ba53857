"""Hosts of many models: a real `python -m topsail host` process against a sidecar of plain sockets."""

import json
import struct

import pytest
from hosting import GATED, SUM, Host
from sidecar import Container

from topsail.container.signature import Signature, Tensor
from topsail.protocol import load, predict
from topsail.protocol.constants import NO_DEADLINE, DType, Feature, Kind, Status
from topsail.protocol.load import Load
from topsail.protocol.payload import Value
from topsail.protocol.predict import Input


def test_a_model_is_loaded_asked_and_unloaded(host):
    host.put("ab/sum", {"model.py": SUM}, input_type="doubles", input_length=2)
    sidecar = host.accept()
    entry = sidecar.load("ab/sum", model="sum", version="v1", kind=4, length=2)
    assert (entry.model, entry.version, entry.input_type, entry.input_length) == ("sum", "v1", 4, 2)
    assert sidecar.predict(entry, [1, 2], [3, 4]) == [3.0, 7.0]
    [(status, message)] = sidecar.predict(entry, [1, 2, 3])
    assert (status, "takes inputs of length 2" in message) == (Status.BAD_INPUT, True)
    sidecar.unload(entry.id)
    assert sidecar.predict(entry, [1, 2]) == [(Status.UNKNOWN_MODEL, f"this container announced no model {entry.id}")]
    again = sidecar.load("ab/sum", model="sum", version="v1")
    assert again.id > entry.id
    assert (again.input_type, again.input_length) == (4, 2)  # what the sidecar does not say the manifest does
    assert sidecar.predict(again, [5, 6]) == [11.0]


def test_inputs_with_names(host):
    """By the signature of the bundle, or by that of the version."""
    double = "def predict(inputs): return [{'y': 2 * x['x']} for x in inputs]"
    named = Signature((Tensor("x", "float64"),), (Tensor("y", "float64"),))
    host.put("own", {"model.py": double}, signature=named)
    host.put("open", {"model.py": double})
    sidecar = host.accept()
    x = Value(DType.FLOAT64, (), struct.pack("<d", 1.5), "x")
    for entry in (
        sidecar.load("own", model="own", kind=6),
        sidecar.load("open", model="open", kind=6, signature=json.dumps(named.document())),
    ):
        assert entry.input_type == 6
        sidecar.peer.send(Kind.PREDICT, predict.encode(1, entry.id, [Input(NO_DEADLINE, [x])]))
        [answer] = sidecar.peer.answer()
        assert (answer.values[0].name, bytes(answer.values[0].data)) == ("y", struct.pack("<d", 3.0))


def test_what_is_there_is_announced_again(host):
    host.put("sum", {"model.py": "print('once more')\n" + SUM})
    sidecar = host.accept()
    assert sidecar.load("sum") == sidecar.load("sum")
    assert sidecar.load("sum", version="2").id != sidecar.load("sum").id


def test_several_may_be_asked_for_in_one_frame(host):
    for n in (1, 2, 3):
        host.put(f"m{n}", {"model.py": f"def predict(inputs): return [{n}.0] * len(inputs)"})
    sidecar = host.accept()
    sidecar.peer.send(Kind.LOAD, load.encode(*(Load("m", str(n), folder=f"m{n}") for n in (1, 2, 3))))
    entries = [sidecar.answered() for _ in range(3)]
    assert [e.version for e in entries] == ["1", "2", "3"]
    assert [sidecar.predict(e, [0]) for e in entries] == [[1.0], [2.0], [3.0]]


def test_the_host_itself_gets_no_queries_and_is_not_unloaded(host):
    sidecar = host.accept()
    [(status, _)] = sidecar.peer.predict([1], model=0)
    assert status == Status.UNKNOWN_MODEL
    sidecar.peer.send(Kind.UNLOAD, load.encode_unload(0))
    sidecar.unload(77)  # which was never there: it is gone all the same, and 0 is not
    assert "the sidecar asked to unload the host itself" in host.said()


def test_a_sidecar_that_knows_no_hosts(tmp_path):
    with Host(tmp_path) as host, Container.accept(host) as peer:
        peer.greet()
        assert "this container is a host of models" in peer.reason()
        host.wait_to_hear("the sidecar is of a version of Topsail that knows no hosts")


def test_other_containers_are_no_hosts(start):
    with start("Many").accept() as peer:
        assert Feature.HOST not in Feature(peer.ready().hello.features)
        peer.send(Kind.LOAD, load.encode(Load("m", "1", folder="m")))
        assert "this container is no host of models" in peer.reason()


def test_garbage(host):
    sidecar = host.accept()
    sidecar.peer.send(Kind.LOAD, struct.pack("<I", 9))
    assert sidecar.peer.reason().startswith("load count at byte 4: 9 entries are promised")


def test_more_than_a_host_takes(host):
    host.put("slow", {"model.py": GATED}, entry="model:Model")
    sidecar = host.accept()
    sidecar.ask_for("slow")
    host.wait_for("loading")
    sidecar.peer.send(Kind.LOAD, load.encode(*[Load("m", "1")] * 5000))
    assert "too many versions were asked for at once" in sidecar.peer.reason()
    host.touch("load")


def test_the_folder_of_models_may_be_an_argument(tmp_path):
    (tmp_path / "models").mkdir()
    with Host(tmp_path, "topsail", "host", "--models", str(tmp_path / "models"), TOPSAIL_MODELS_DIR="") as host:
        host.put("sum", {"model.py": SUM})
        sidecar = host.accept()
        assert sidecar.predict(sidecar.load("sum"), [1, 2]) == [3.0]


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"TOPSAIL_MODELS_DIR": ""}, "TOPSAIL_MODELS_DIR is not set"),
        ({"TOPSAIL_MODELS_DIR": "/nowhere"}, "the folder of models '/nowhere' is not there"),
        ({"TOPSAIL_SIDECAR": ""}, "TOPSAIL_SIDECAR is not set"),
    ],
)
def test_settings_that_make_no_sense(tmp_path, environ, says):
    with Host(tmp_path, **environ) as host:
        assert host.ends() == 1
        assert says in host.said() and "Traceback" not in host.said()
