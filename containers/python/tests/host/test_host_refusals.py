"""What a host cannot load is told with its reason, and harms no other model."""

import pytest
from hosting import SUM, Host

from topsail import bundle
from topsail.bundle import PYTHON, Manifest
from topsail.protocol.constants import Status

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
