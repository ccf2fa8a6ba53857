"""The deployers of clipper_admin 0.4.1, its code unchanged, against Topsail; see test_clipper_admin.py."""

import os
import pickle
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType, SimpleNamespace

import clipper_admin.deployers.python as imported_before
import numpy
import pytest
from clipper_admin import ClipperConnection, ClipperException
from management import Management
from test_clipper_admin import addresses, ask, until  # noqa: F401 (a fixture)

from topsail.bundle import read
from topsail.clipper import TopsailContainerManager
from topsail.clipper.image import image
from topsail.deploy import requirements
from topsail.deploy.failure import DeployFailed

RATE = 10


@pytest.fixture
def clipper(addresses):  # noqa: F811
    query, admin = addresses
    connection = ClipperConnection(TopsailContainerManager(query_addr=query, admin_addr=admin))
    connection.connect()
    yield connection
    for app in connection.get_all_apps():
        connection.unregister_application(app)
    connection.stop_models([m.rpartition(":")[0] for m in connection.get_all_models()])


def test_an_endpoint_of_a_function(clipper):
    """With the image of the deployer's own, of which there is none for this Python. What the function uses travels."""
    factors = numpy.array([1.0, 2.0])

    def weighed(inputs):
        return [str(float(x @ factors) * RATE) for x in inputs]

    imported_before.create_endpoint(clipper, "weighed", "doubles", weighed, slo_micros=2_000_000)
    until(lambda: ask(clipper, "weighed", [1.0, 2.0]) == 50.0)
    assert clipper.get_model_info("weighed", "1")["container_name"].startswith("sha256:")


def test_labels_replicas_and_the_next_version(clipper):
    clipper.register_application("shout", "strings", "?", 2_000_000)
    deploy = imported_before.deploy_python_closure
    deploy(clipper, "shout", 1, "strings", lambda xs: [x.upper() for x in xs], labels=["loud"], num_replicas=2)
    clipper.link_model_to_app("shout", "shout")
    until(lambda: clipper.get_num_replicas("shout", 1) == 2)
    until(lambda: ask(clipper, "shout", "hi") == "HI")
    assert clipper.get_model_info("shout", "1")["labels"] == ["loud"]
    deploy(clipper, "shout", 2, "strings", lambda xs: [[x, None] for x in xs], base_image="mine:1", registry="mine")
    until(lambda: ask(clipper, "shout", "hi") == "['hi', None]")  # by str, as Clipper's own container
    with pytest.raises(ClipperException, match="exists|other content"):
        deploy(clipper, "shout", 2, "strings", lambda xs: ["other" for _ in xs])


def test_what_is_no_model_of_a_deployer(clipper, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM scratch")
    with pytest.raises(ClipperException, match="has no func.pkl.*Pack what it is to be with topsail.bundle"):
        clipper.build_and_deploy_model("odd", 1, "doubles", str(tmp_path), "mine:1")
    with pytest.raises(ClipperException, match="is no requirement that a bundle may have"):
        imported_before.deploy_python_closure(
            clipper, "odd", 1, "doubles", lambda xs: xs, pkgs_to_install=["git+https://models.example/x"]
        )
    assert clipper.get_all_models() == []


def test_packages():
    """A name alone is the version that is here; the deployer's model may have been saved with it."""
    from clipper_admin.deployers.deployer_utils import save_python_function

    folder = Path(save_python_function("f", lambda xs: [numpy.sum(x) for x in xs]))
    manifest = read(image(folder, ["requests", "no-such-package-here", "numpy>=2"]).data).manifest
    assert {"no-such-package-here", "numpy>=2", f"requests=={version('requests')}"} <= {*manifest.requirements}
    assert (manifest.runtime, manifest.entry) == ("python", "topsail.clipper.model:Model")
    (folder / "tfmodel").mkdir()
    (folder / "tfmodel" / "saved_model.pb").write_bytes(b"")
    with pytest.raises(DeployFailed, match="tfmodel/saved_model.pb is of a library"):
        image(folder)


# Deployers of libraries, with as much of each as the deployer and Clipper's container use of it.


class Net:
    """What torch and keras save here, as a pickle."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, inputs):
        return [float(sum(x)) * self.factor for x in inputs]

    def state_dict(self):
        return {"factor": self.factor}

    def load_state_dict(self, state):
        assert state == self.state_dict()
        self.factor *= 10  # to show that it was called

    def save(self, path):
        save(self, path)

    def run(self, inputs):
        return self(inputs)


def save(thing, path, **_):
    Path(path).write_bytes(pickle.dumps(thing))


def load(path, **_):
    return pickle.loads(Path(path).read_bytes())


@pytest.fixture
def libraries(monkeypatch):
    """They are installed, by what is known of them."""
    exported = SimpleNamespace(_export=lambda model, inputs, path, export_params: save(model, path))
    config = SimpleNamespace(backend=lambda: "torch")
    fakes = {
        "torch": {"save": save, "load": load, "onnx": exported},
        "keras": {
            "Model": Net,
            "models": SimpleNamespace(load_model=load),
            "config": config,
        },
        "onnxruntime": {},
        "onnxruntime.backend": {"prepare": lambda path, device: load(path)},
    }
    for name, members in fakes.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("KERAS_BACKEND", "nothing")
    monkeypatch.setattr(requirements, "_pin", lambda name, cuda: f"{name}==1.0")
    yield
    for name in ("keras", "onnx", "pytorch"):
        sys.modules.pop(f"clipper_admin.deployers.{name}", None)


def with_model(model, inputs):
    return [f"{value:g}" for value in model(inputs)]


@pytest.mark.parametrize(
    ("deployer", "function", "before", "needed", "answer"),
    [
        ("pytorch", "deploy_pytorch_model", (), "torch", 60),
        ("keras", "deploy_keras_model", (), "keras", 6),
        ("onnx", "deploy_pytorch_model", ([1.0],), "onnxruntime", 6),
    ],
)
def test_deployers_of_libraries(deployer, function, before, needed, answer, libraries):
    fake = Management()
    try:
        connection = ClipperConnection(TopsailContainerManager(query_addr=fake.addr, admin_addr=fake.addr))
        connection.connect()
        deploy = getattr(import_module(f"clipper_admin.deployers.{deployer}"), function)
        deploy(connection, "net", 1, "doubles", *before, with_model, Net(2))
        connection.register_application("net", "doubles", "?", 2_000_000)
        connection.link_model_to_app("net", "net")
        assert ask(connection, "net", [1.0, 2.0]) == answer
        [data] = fake.artifacts.values()
        said = read(data).manifest
        assert f"{needed}==1.0" in said.requirements
        assert (os.environ["KERAS_BACKEND"], said.options) == (
            ("torch", {"backend": "torch"}) if deployer == "keras" else ("nothing", {})
        )
    finally:
        fake.stop()


def test_other_container_managers_build_images_as_ever():
    class Docker:
        cluster_identifier = "docker"

    TopsailContainerManager()
    connection = ClipperConnection(Docker())
    with pytest.raises(Exception, match="server API version") as e:  # Docker's, which is not there
        connection.build_model("m", 1, str(Path(__file__).parent), "base")
    assert "func.pkl" not in str(e.value)
