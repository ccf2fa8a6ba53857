"""Clipper's names on the client, and the container manager without Clipper's package; tests/clipper has that."""

import os
import socket
import sys
from pathlib import Path

import pytest
from sidecar import HERE, environment

import topsail
from topsail import bundle
from topsail.bundle import PYTHON, Manifest
from topsail.clipper import TopsailContainerManager, child

BUNDLE = bundle.build(Manifest("python", "m.py", PYTHON, input_type="doubles"), {"m.py": b"x = 1"})
IMAGES = ("query", "management", "exporter", 1000, 1, 5, 300, 1)


@pytest.fixture
def digest(client):
    return client.artifacts.upload(BUNDLE).digest


@pytest.fixture
def manager(management):
    return TopsailContainerManager("mine", query_addr=management.addr, admin_addr=management.addr)


def test_a_session(client, digest, management):
    client.register_application("shop", "doubles", "-1", 20_000)
    client.register_application("other", "doubles", {"label": None}, 20_000)
    assert client.get_all_apps() == ["shop", "other"]
    assert [a.default_output for a in client.get_all_apps(verbose=True)] == ["-1", '{"label": null}']
    assert client.get_app_info("shop").latency_slo_micros == 20_000
    assert client.get_app_info("nothing") is None
    client.deploy_model("sum", 1, "doubles", digest, labels=["a"], num_replicas=2, batch_size=8)
    client.deploy_model("sum", "2", "doubles", digest)
    client.link_model_to_app("shop", "sum")
    assert client.get_linked_models("shop") == ["sum"]
    assert client.get_all_models() == ["sum:1", "sum:2"]
    first, second = client.get_all_models(verbose=True)
    assert (first.labels, first.batch, first.replicas) == (["a"], {"max_size": 8}, 2)
    assert (second.labels, second.batch, second.replicas) == (None, None, 1)
    assert client.get_model_info("sum", 2) == second
    assert client.get_model_info("sum", 3) is None
    assert client.get_current_model_version("sum") == "2"
    client.set_model_version("sum", 1, num_replicas=3)
    assert client.get_current_model_version("sum") == "1"
    assert (client.get_num_replicas("sum"), client.get_num_replicas("sum", 2)) == (3, 1)
    client.set_num_replicas("sum", 1)
    assert client.get_all_model_replicas() == ["sum-1-0", "sum-2-0"]
    assert client.get_all_model_replicas(verbose=True)[0].state == "ready"
    client.unlink_model_from_app("shop", "sum")
    client.stop_models("sum")
    assert client.get_all_model_replicas() == []
    client.unregister_application("shop")
    assert client.get_all_apps() == ["other"]


def test_the_manager(manager, client, digest, management, tmp_path):
    manager.connect()
    assert manager.cluster_identifier == "mine"
    assert {manager.get_query_addr(), manager.get_admin_addr(), manager.get_metric_addr()} == {management.addr}
    watched = TopsailContainerManager(query_addr=management.addr, metric_addr="127.0.0.1:9090")
    assert watched.get_metric_addr() == "127.0.0.1:9090"
    manager.deploy_model(name="sum", version=1, input_type="doubles", image=digest, num_replicas=2)
    [posted] = [h for h in management.heard if h.path.endswith("/versions?keep_current=true")]
    assert posted.json == {
        "version": "1",
        "input_type": "doubles",
        "bundle": digest,
        "replicas": 2,
        "prepared": True,
    }
    assert manager.get_num_replicas("sum", "1") == 2
    manager.set_num_replicas("sum", "1", "doubles", digest, 1)
    assert manager.get_num_replicas("sum", "1") == 1
    [file] = manager.get_logs(str(tmp_path / "logs"))
    assert file.endswith("logs/sum_1_sum-1-0.log")
    assert Path(file).read_text("utf-8") == "loading\nréady\n"
    manager.stop_models({"sum": ["1"]})
    assert manager.get_num_replicas("sum", "1") == 0
    manager.set_num_replicas("sum", "1", "doubles", digest, 1)
    manager.stop_all()
    assert manager.get_num_replicas("sum", "1") == 0


def test_a_docker_image(manager, management):
    with pytest.raises(topsail.TopsailError, match="local mode runs no Docker images"):
        manager.deploy_model(
            name="sum", version="1", input_type="doubles", image="models.example/sum:1", num_replicas=1
        )


def test_what_answers_already_is_not_started(manager):
    manager.start_clipper(*IMAGES)
    assert manager._child is None


# Starting it.


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A manager at an address where nobody is, with a program that stands for topsail."""
    program = tmp_path / "topsail"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fakes" / "local.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"] + os.pathsep + str(HERE))
    monkeypatch.setenv("TOPSAIL_API_KEY", "of-a-client")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(child.tempfile, "tempdir", str(tmp_path))
    with socket.socket() as s:  # which keeps the port for the program
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        addr = f"127.0.0.1:{s.getsockname()[1]}"
        manager = TopsailContainerManager(query_addr=addr, admin_addr=addr, program=str(program))
        yield manager
        if manager._child:
            manager._child.stop(graceful=False)


def test_it_is_started_and_stopped(started, tmp_path):
    started.start_clipper(*IMAGES)
    assert started._client.system.me().mode == "local"
    [log] = started.get_logs(str(tmp_path / "logs"))
    assert Path(log).read_text().startswith("starting\n")  # and perhaps that somebody who looked hung up
    process = started._child._process
    started.stop_all()
    assert process.poll() == 0
    started.start_clipper(*IMAGES)  # and again
    started.stop_all(graceful=False)


def test_what_does_not_heed_is_killed(started, monkeypatch):
    monkeypatch.setenv("TEST_TOPSAIL", "stubborn")
    monkeypatch.setattr(child, "_GRACE", 0.1)
    started.start_clipper(*IMAGES)
    process = started._child._process
    started.stop_all()
    assert process.poll() == -9


def test_its_last_words(started, monkeypatch):
    monkeypatch.setenv("TEST_TOPSAIL", "fail")
    with pytest.raises(
        topsail.TopsailError, match="Topsail does not start: it ended with status 1: .*the address is in use"
    ):
        started.start_clipper(*IMAGES)


def test_one_that_answers_nobody(started, monkeypatch):
    monkeypatch.setenv("TEST_TOPSAIL", "deaf")
    monkeypatch.setattr("topsail.clipper.manager._STARTING", 1.0)
    with pytest.raises(topsail.TopsailError, match="it was not ready within 1 s: "):
        started.start_clipper(*IMAGES)


def test_no_such_program():
    gone = TopsailContainerManager(query_addr="127.0.0.1:1", admin_addr="127.0.0.1:1", program="no-such-topsail")
    with pytest.raises(topsail.TopsailError, match="'no-such-topsail' is not on the PATH: name it by program="):
        gone.start_clipper(*IMAGES)
