"""Hosts of many models: a real `python -m topsail host` process against a sidecar of plain sockets."""

import gc
import importlib
import os
import queue
import socket
import struct
import sys
import threading
import weakref
from pathlib import Path

import pytest
from sidecar import PATIENCE, Container, Peer, environment

from topsail import bundle
from topsail.bundle import PYTHON, Manifest
from topsail.connection import Connection
from topsail.host import loader, modules
from topsail.host.guests import Guests
from topsail.orders import Orders
from topsail.runtime.refusal import Refused
from topsail.wire import announce, load
from topsail.wire.constants import Feature, Kind, State, Status
from topsail.wire.load import Load

SUM = "def predict(inputs): return [sum(map(float, x)) for x in inputs]"


class Sidecar:
    """The sidecar's side of a host's connection, beyond what it has in common with others."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        peer.greet(features=Feature.HOST | Feature.STAGES)
        [self.host] = self.announced()
        assert (self.host.id, self.host.state, self.host.input_type, self.host.model) == (0, State.READY, 0, "small")

    def announced(self):
        return announce.decode(self.peer.expect(Kind.ANNOUNCE))

    def ask_for(self, folder, model="guest", version="1", kind=0, length=0):
        self.peer.send(Kind.LOAD, load.encode(Load(model, version, kind, length, folder, "sha256:00", batch=b"{}")))

    def answered(self):
        """What became of the version; in the same frame the host says what it takes now."""
        [entry, self.host] = self.announced()
        assert (self.host.id, self.host.state) == (0, State.READY) and self.host.memory > 1 << 20
        return entry

    def load(self, folder, **asked):
        self.ask_for(folder, **asked)
        entry = self.answered()
        assert (entry.state, entry.reason) == (State.READY, "")
        return entry

    def refused(self, folder, **asked):
        self.ask_for(folder, **asked)
        entry = self.answered()
        assert (entry.state, entry.memory) == (State.GONE, 0)
        return entry.reason

    def unload(self, id):
        self.peer.send(Kind.UNLOAD, load.encode_unload(id))
        assert self.answered().state == State.GONE

    def predict(self, entry, *values, **options):
        return self.peer.predict(*values, model=entry.id, **options)


class Host(Container):
    def __init__(self, folder: Path, *command: str, **environ: str) -> None:
        self.models = folder / "models"
        self.models.mkdir(exist_ok=True)
        given = {"TOPSAIL_MODELS_DIR": str(self.models), "TOPSAIL_MODEL": "small", "TOPSAIL_INPUT_TYPE": "any"}
        super().__init__(folder, "-m", *(command or ("topsail", "host")), **given | environ)

    def accept(self) -> Sidecar:
        return Sidecar(super().accept())

    def put(self, name, files, entry="model:predict", runtime="python", **said):
        """Unpacks a bundle, and returns its name below the folder of models."""
        content = {n: c if isinstance(c, bytes) else c.encode() for n, c in files.items()}
        python = {} if runtime in ("command", "pmml") else {"python": PYTHON}
        bundle.build(Manifest(runtime, entry, **(python | said)), content).unpack(self.models / name)
        return name


@pytest.fixture
def host(tmp_path):
    with Host(tmp_path) as host:
        yield host


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


# Modules.


def test_each_finds_its_own_modules(host):
    """Of the same names, packages and packages without a file as well, and one that was read by another path."""
    model = """
import helpers, kit.part, bare.thing
class Model:
    def predict(self, inputs):
        return [f"{helpers.NAME} {kit.part.NAME} {bare.thing.NAME}"] * len(inputs)
"""
    for n in ("one", "two"):
        text = f"NAME = {n!r}"
        files = {"model.py": model, "helpers.py": text, "bare/thing.py": text}
        files |= {"kit/__init__.py": "", "kit/part.py": text}
        host.put(n, files, entry="model:Model", input_type="doubles")
    sidecar = host.accept()
    one, two = sidecar.load("one"), sidecar.load("two", version="2")
    assert sidecar.predict(one, [0]) + sidecar.predict(two, [0]) == ["one one one", "two two two"]
    sidecar.unload(one.id)
    assert sidecar.predict(two, [0]) == ["two two two"]


def test_nothing_is_left_behind(host):
    look = (
        "import os, sys\ndef predict(inputs): return [repr((os.getcwd(), sys.path, list(sys.modules)))] * len(inputs)"
    )
    host.put("look", {"look.py": look}, entry="look:predict")
    host.put("a", {"model.py": "import sys\nsys.path.append('more')\nimport extra\n" + SUM, "more/extra.py": ""})
    host.put("b", {"model.py": "import extra\n" + SUM})
    sidecar = host.accept()
    looks = sidecar.load("look")
    before = sidecar.predict(looks, [0])
    a = sidecar.load("a", version="a")
    assert sidecar.predict(a, [1, 2]) == [3.0]
    assert "needs the module 'extra'" in sidecar.refused("b", version="b")
    assert sidecar.predict(looks, [0]) == before


def test_modules_of_the_same_names_as_others(host):
    """A bundle with a pickle.py of its own gets Python's, as it would alone; one with a module that so far only another
    bundle has imported gets its own, and the other keeps what it has."""
    mine = "def predict(inputs): return [colorsys.MINE] * len(inputs)"
    host.put("a", {"model.py": "import colorsys\ncolorsys.MINE = 'a'\n" + mine})
    host.put("b", {"model.py": "import colorsys\n" + mine, "colorsys.py": "MINE = 'b'"})
    host.put("c", {"model.py": "import pickle\n" + SUM, "pickle.py": "1/0"})
    sidecar = host.accept()
    a, b, c = (sidecar.load(n, version=n) for n in "abc")
    assert sidecar.predict(a, [0]) + sidecar.predict(b, [0]) + sidecar.predict(c, [0]) == ["a", "b", 0.0]
    host.put("d", {"model.py": "import colorsys\n" + mine})
    assert sidecar.predict(sidecar.load("d"), [0]) == ["a"]


def test_data_may_be_called_like_modules(host):
    """Which are not imported once more for it."""
    host.put("a", {"model.py": "import colorsys\ncolorsys.MINE = 'a'\n" + SUM})
    model = "import colorsys\ndef predict(inputs): return [colorsys.MINE] * len(inputs)"
    host.put("b", {"model.py": model, "colorsys.bin": "", "colorsys/data": ""})
    sidecar = host.accept()
    sidecar.load("a")
    assert sidecar.predict(sidecar.load("b", version="b"), [0]) == ["a"]


def test_a_module_that_is_imported_only_when_asked_is_too_late(host):
    """The example is tried as queries will be, so that it shows before the first of them."""
    text = "def predict(inputs):\n    import late\n    return [late.X] * len(inputs)"
    host.put("late", {"model.py": text, "late.py": "X = 1.0"}, input_type="doubles", example=[1.0])
    reason = host.accept().refused("late")
    assert reason == "warm-up failed for example 0 of 1: ModuleNotFoundError: No module named 'late'"


def test_files_are_found_by_relative_names_while_a_model_loads(host):
    text = """
class Model:
    def setup(self):
        with open("offset") as file:
            self.offset = float(file.read())
    def predict(self, inputs): return [self.offset] * len(inputs)
"""
    for n in ("1.5", "2.5"):
        host.put(n, {"model.py": text, "offset": n}, entry="model:Model")
    sidecar = host.accept()
    entries = [sidecar.load(n, version=n) for n in ("1.5", "2.5")]
    assert [sidecar.predict(e, [0]) for e in entries] == [[1.5], [2.5]]


# What goes wrong.

OTHER = "3.9" if PYTHON != "3.9" else "3.8"
REFUSED = {
    "another Python": ({"python": OTHER}, f"the bundle was made with Python {OTHER}, and this is Python {PYTHON}"),
    "not installed": ({"requirements": ("no-such-thing==1.2",)}, "requires: no-such-thing==1.2 (it is not there)"),
    "another version": ({"requirements": ("pytest==0.1", "pytest")}, "requires: pytest==0.1 (there is "),
    "a program": ({"runtime": "command", "entry": "", "command": ("a",)}, "'command' needs a process of its own"),
    "R": ({"runtime": "r", "entry": "model.py"}, "the runtime 'r' needs a process of its own"),
    "Spark": ({"runtime": "pyspark"}, "the runtime 'pyspark' needs a process of its own"),
    "a host": ({"runtime": "host", "entry": ""}, "the runtime 'host' needs a process of its own"),
    "Java": ({"runtime": "pmml", "entry": "model.py"}, "the runtime 'pmml' needs a process of its own"),
    "no such function": ({"entry": "model:other"}, "the entry 'model:other' cannot be found: model has no 'other'"),
    "an example that fails": ({"input_type": "doubles", "example": [-1.0]}, "example 0 of 1: ValueError: negative"),
    "another input type": ({"entry": "model:Ints", "input_type": "doubles"}, "takes ints, and is served with doubles"),
}
MODEL = """
def predict(inputs):
    if any(x[0] < 0 for x in inputs):
        raise ValueError("negative")
    return [1.0] * len(inputs)

class Ints:
    input_type = "ints"
    predict = staticmethod(predict)
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One host for all tests that leave it empty."""
    with Host(tmp_path_factory.mktemp("shared")) as host:
        yield host, host.accept()


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_loaded_is_told_and_harms_nobody(shared, case):
    host, sidecar = shared
    said, says = REFUSED[case]
    host.put(case, {"model.py": MODEL}, **said)
    reason = sidecar.refused(case)
    assert says in reason and "\n" not in reason
    host.put("good", {"model.py": SUM})
    good = sidecar.load("good", version="good")
    assert sidecar.predict(good, [1, 2]) == [3.0]
    sidecar.unload(good.id)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise KeyError('colour')", "the model failed: KeyError: 'colour'; its traceback is in the log"),
        ("raise ValueError('first\\nlast')", "the model failed: ValueError: last; its traceback"),
        ("import sys; sys.exit(3)", "the model failed: SystemExit: 3; its traceback"),
        ("def predict(:", "the model failed: SyntaxError: "),
        ("raise RuntimeError('x' * 100_000)", "the model failed: RuntimeError: xxx"),
        ("import no_such_thing", "add no_such_thing with its version to the requirements"),
    ],
)
def test_the_models_own_trouble(shared, text, says):
    host, sidecar = shared
    host.put("trouble", {"model.py": text})
    reason = sidecar.refused("trouble")
    assert says in reason and len(reason) < 1024
    if "failed" in says:
        host.wait_to_hear("Traceback")


OUTSIDE = [
    "",
    ".",
    "..",
    "../outside",
    "/etc",
    "a/../../outside",
    "link",
    "link/x",
    "../models",
    "nothing",
    "a\0b",
    "x" * 300,
]


@pytest.mark.parametrize("folder", OUTSIDE)
def test_folders_that_are_elsewhere(shared, folder):
    host, sidecar = shared
    outside = host.folder / "outside"
    if not outside.exists():
        outside.mkdir()
        bundle.build(Manifest("python", "model:predict", PYTHON), {"model.py": SUM.encode()}).unpack(outside)
        (host.models / "link").symlink_to(outside)
    says = {"nothing": "is no unpacked bundle", "a\0b": "embedded null byte", "x" * 300: "File name too long"}
    assert says.get(folder, "is not below that of the host's models") in sidecar.refused(folder)


def test_a_link_that_stays_inside(shared):
    host, sidecar = shared
    host.put("target", {"model.py": SUM})
    (host.models / "alias").symlink_to("target")
    sidecar.unload(sidecar.load("alias").id)


def test_a_model_that_ends_its_process_fails_alone(host):
    host.put("end", {"model.py": "import sys\ndef predict(inputs): sys.exit('over')"})
    host.put("sum", {"model.py": SUM})
    sidecar = host.accept()
    end, good = sidecar.load("end"), sidecar.load("sum", version="2")
    assert sidecar.predict(end, [1], [2]) == [(Status.MODEL_ERROR, "SystemExit: over")] * 2
    assert sidecar.predict(good, [1, 2]) == [3.0]


def test_feedback_is_ignored(host):
    text = """
class Model:
    learned = 0.0
    def predict(self, inputs): return [self.learned] * len(inputs)
    def correct(self, pairs, user): self.learned = 1.0
"""
    host.put("m", {"model.py": text}, entry="model:Model")
    sidecar = host.accept()
    entry = sidecar.load("m")
    sidecar.peer.teach(([1.0], 7.0), model=entry.id)
    assert sidecar.predict(entry, [1]) == [0.0]


# Memory.


def test_what_a_model_takes_is_told(host):
    """An array of 64 MiB in a file, another that is computed, and a model that is next to nothing."""
    size = 64 << 20
    host.put("big", {"model.py": "DATA = open('weights', 'rb').read()\n" + SUM, "weights": bytes(size)})
    host.put("made", {"model.py": f"import itertools\nDATA = bytearray(itertools.repeat(1, {size // 2}))\n" + SUM})
    host.put("small", {"model.py": SUM})
    sidecar = host.accept()
    empty = sidecar.host.memory
    small = sidecar.load("small", version="small")
    assert (host.models / "small" / "model.py").stat().st_size <= small.memory < 4 << 20
    entry = sidecar.load("big", version="big")
    assert size <= entry.memory < size * 1.1
    assert size <= sidecar.host.memory - empty < size * 1.2
    made = sidecar.load("made", version="made")
    assert size / 2 <= made.memory < size * 0.6
    sidecar.unload(entry.id)
    assert sidecar.host.memory - empty < size * 0.6
    sidecar.unload(made.id)  # though its module and its function hold each other
    assert sidecar.host.memory - empty < size * 0.1
    assert sidecar.load("big", version="big").memory == pytest.approx(entry.memory, rel=0.1)


def test_what_was_loaded_goes_at_once(tmp_path, monkeypatch):
    """A module and its functions hold each other, and only the collector would find that."""
    (tmp_path / "model.py").write_text("class Weights:\n    pass\n\nweights = Weights()\n\ndef predict(v):\n    return weights\n")
    monkeypatch.delitem(sys.modules, "model", raising=False)
    gc.disable()
    try:
        with modules.entered(tmp_path, frozenset()) as own:
            weights = weakref.ref(importlib.import_module("model").weights)
        assert [m.__name__ for m in own] == ["model"] and weights() is not None
        modules.forget(own)
        assert weights() is None
    finally:
        gc.enable()


def test_libraries_are_nobodys_own(tmp_path):
    """The first that needs one must not look as if it took the most, or everything else would be unloaded for it."""
    (tmp_path / "large_library.py").write_text("import itertools\nDATA = bytearray(itertools.repeat(1, 32 << 20))")
    path = environment()["PYTHONPATH"] + os.pathsep + str(tmp_path)
    with Host(tmp_path, PYTHONPATH=path) as host:
        for n in ("first", "second"):
            host.put(n, {"model.py": "import large_library\nMINE = b'm' * (8 << 20)\n" + SUM})
        sidecar = host.accept()
        before = sidecar.host.memory
        takes = [sidecar.load(n, version=n).memory for n in ("first", "second")]
        assert all(7 << 20 < t < 10 << 20 for t in takes)
        assert sidecar.host.memory - before > 48 << 20


# Time.

GATED = """
import os, time
def reach(name):
    open(os.path.join(os.environ["TEST_FOLDER"], name), "w").close()
def wait_for(name):
    until = time.monotonic() + 20
    while not os.path.exists(os.path.join(os.environ["TEST_FOLDER"], name)):
        assert time.monotonic() < until
        time.sleep(0.001)
class Model:
    def setup(self):
        reach("loading")
        wait_for("load")
    def predict(self, inputs):
        reach("running")
        wait_for("run")
        return [1.0] * len(inputs)
    def teardown(self):
        reach("closed")
"""


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
    begun, go_on, orders = threading.Event(), threading.Event(), Orders()

    class Bundles:
        def load(self, asked):
            begun.set()
            go_on.wait(PATIENCE)
            raise Refused("at last")

    answers = queue.SimpleQueue()
    mine = loader.Loader(Bundles(), Guests(), orders, lambda order, entry: answers.put(entry))
    mine.start()
    connection = Connection(socket.socketpair()[0])
    orders.put(Load("m", "1"), connection)
    begun.wait(PATIENCE)
    mine.check()  # the sidecar is patient
    connection.break_off()
    with pytest.raises(loader.Hanging, match="m:1 has hung for 0 s, and holds up all that is to be loaded"):
        mine.check()
    go_on.set()
    assert answers.get(timeout=PATIENCE).reason == "at last"
    mine.stop()
    mine.check()


# The sidecar.


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
