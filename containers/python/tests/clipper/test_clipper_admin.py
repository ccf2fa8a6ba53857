"""Clipper's own admin package, version 0.4.1 with its code unchanged, drives Topsail through our container manager.

It is run where that package is installed; see tests/clipper/README.md. With TOPSAIL_ADMIN=host:port and
TOPSAIL_QUERY=host:port it drives that Topsail, without them a fake. Some calls stop everything that there is, so a
server that has any app or model is somebody's, and is refused before anything is changed.
"""

import os
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import requests
from clipper_admin import ClipperConnection, ClipperException
from management import Management

import topsail
from topsail import bundle
from topsail.bundle import PYTHON, Manifest
from topsail.clipper import TopsailContainerManager

PATIENCE = 120.0  # seconds for a replica of a real server to be ready


def summing(factor):
    """A bundle that needs nothing but Python."""
    text = f"def predict(inputs):\n    return [float(sum(x)) * {factor} for x in inputs]\n"
    manifest = Manifest("python", f"by_{factor}:predict", PYTHON, input_type="doubles", example=[1.0])
    return bundle.build(manifest, {f"by_{factor}.py": text.encode()})


@pytest.fixture(scope="module")
def addresses():
    """Of the query frontend and of management."""
    if "TOPSAIL_ADMIN" in os.environ:
        query, admin = os.environ["TOPSAIL_QUERY"], os.environ["TOPSAIL_ADMIN"]
        _must_be_empty(admin)
        yield query, admin
        return
    fake = Management()
    yield fake.addr, fake.addr
    fake.stop()
    assert fake.breaches == []


def _must_be_empty(admin):
    client = topsail.Client(admin_url=f"http://{admin}")
    if there := [a.name for a in client.apps.list()] + [m.name for m in client.models.list()]:
        pytest.exit(f"{admin} is in use, it has {', '.join(there)}: name a server of its own for this test", 2)


@pytest.fixture(scope="module")
def digests(addresses):
    client = topsail.Client(admin_url=f"http://{addresses[1]}", timeout=30)
    return [client.artifacts.upload(summing(factor)).digest for factor in (1, 10)]


@pytest.fixture
def clipper(addresses):
    query, admin = addresses
    connection = ClipperConnection(TopsailContainerManager(query_addr=query, admin_addr=admin))
    connection.connect()
    yield connection
    for app in {"shop"} & {*connection.get_all_apps()}:
        connection.unregister_application(app)
    connection.stop_models(["sum", "elsewhere"])


def until(holds):
    """Waits for a real server, which does what it is told a moment later."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.1)


def ask(clipper, app, x):
    url = f"http://{clipper.get_query_addr()}/{app}/predict"
    answer = requests.post(url, json={"input": x}, timeout=10).json()
    return "default" if answer["default"] else answer["output"]


def test_the_package_is_the_one_that_is_meant():
    assert version("clipper_admin") == "0.4.1"


def test_a_whole_session(clipper, digests, tmp_path):
    first, second = digests
    assert clipper.cm.cluster_identifier == "topsail"

    clipper.register_application("shop", "doubles", "-1.0", 1_000_000)
    assert clipper.get_all_apps() == ["shop"]
    info = clipper.get_app_info("shop")
    assert (info["name"], info["input_type"], info["default_output"], info["latency_slo_micros"]) == (
        "shop",
        "doubles",
        "-1.0",
        1_000_000,
    )
    assert clipper.get_app_info("nothing") is None

    clipper.deploy_model("sum", "1", "doubles", first, num_replicas=1)
    assert clipper.get_current_model_version("sum") == "1"
    assert clipper.get_all_models() == ["sum:1"]
    assert clipper.get_model_info("sum", "1")["container_name"] == first
    assert clipper.get_model_info("sum", "2") is None
    clipper.link_model_to_app("shop", "sum")
    assert clipper.get_linked_models("shop") == ["sum"]
    until(lambda: clipper.get_num_replicas("sum") == 1)
    until(lambda: ask(clipper, "shop", [1.0, 2.0]) == 3.0)

    clipper.set_num_replicas("sum", 2)
    until(lambda: clipper.get_num_replicas("sum", "1") == 2)
    assert len(clipper.get_all_model_replicas()) == 2

    clipper.deploy_model("sum", 2, "doubles", second)
    assert clipper.get_current_model_version("sum") == "2"
    until(lambda: ask(clipper, "shop", [1.0, 2.0]) == 30.0)
    clipper.set_model_version("sum", "1", num_replicas=1)
    until(lambda: ask(clipper, "shop", [1.0, 2.0]) == 3.0)

    files = clipper.get_clipper_logs(str(tmp_path / "logs"))
    assert len(files) >= 2
    assert all(Path(file).exists() for file in files)
    assert isinstance(clipper.inspect_instance(), dict)
    assert clipper.get_metric_addr() == clipper.get_query_addr()

    clipper.stop_inactive_model_versions(["sum"])
    assert clipper.get_all_models() == ["sum:1"]
    clipper.unlink_model_from_app("shop", "sum")
    assert clipper.get_linked_models("shop") == []
    clipper.stop_versioned_models({"sum": ["1"]})
    assert clipper.get_all_models() == []
    clipper.delete_application("shop")
    assert clipper.get_all_apps() == []


def test_a_model_that_is_registered_alone(clipper):
    clipper.register_model("elsewhere", "1", "doubles")
    assert clipper.get_model_info("elsewhere", "1")["container_name"] == "NO_CONTAINER"
    with pytest.raises(ClipperException, match="containerless"):
        clipper.set_num_replicas("elsewhere", 2)
    clipper.stop_models(["elsewhere"])
    assert clipper.get_all_models() == []


def test_a_docker_image_is_refused(clipper):
    """In the words of the service; and nothing is registered."""
    with pytest.raises(ClipperException, match=r"(?i)docker|image") as e:
        clipper.deploy_model("sum", "1", "doubles", "models.example/sum:1")
    assert "Traceback" not in e.value.msg
    assert clipper.get_all_models() == []


def test_a_bundle_that_is_not_there(clipper):
    with pytest.raises(ClipperException, match="(?i)bundle"):
        clipper.deploy_model("sum", "1", "doubles", "sha256:" + "0" * 64)
    assert clipper.get_all_models() == []


def test_stopping_all_leaves_no_replica(clipper, digests):
    clipper.deploy_model("sum", "1", "doubles", digests[0])
    clipper.stop_all()
    until(lambda: clipper.get_num_replicas("sum", "1") == 0)


def test_nobody_is_there():
    manager = TopsailContainerManager(query_addr="127.0.0.1:1", admin_addr="127.0.0.1:1")
    channel = manager._client._management
    channel._target = replace(channel._target, timeout=0.2)
    with pytest.raises(ClipperException, match="cannot be reached"):
        ClipperConnection(manager).connect()


def test_a_program_that_is_not_there():
    manager = TopsailContainerManager(query_addr="127.0.0.1:1", admin_addr="127.0.0.1:1", program="no-such-topsail")
    with pytest.raises(ClipperException, match="'no-such-topsail' is not on the PATH: name it by program="):
        ClipperConnection(manager).start_clipper()


def test_what_answers_already_is_used(addresses):
    query, admin = addresses
    connection = ClipperConnection(
        TopsailContainerManager(query_addr=query, admin_addr=admin, program="no-such-topsail")
    )
    connection.start_clipper()
    assert connection.connected
