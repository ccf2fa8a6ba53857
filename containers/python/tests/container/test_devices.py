"""Which GPUs a replica sees, by a program that lists them as NVIDIA's does."""

import os

import pytest
from bundles import source
from sidecar import Container

from topsail.container.devices import check
from topsail.container.settings import SettingsError

TWO = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa-1)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb-2)
"""
SLICED = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa-1)
  MIG 1g.5gb      Device  0: (UUID: MIG-cccc-1)
  MIG 1g.5gb      Device  1: (UUID: MIG-dddd-2)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb-2)
"""


@pytest.fixture
def node(tmp_path):
    """The environment of a task on a node whose nvidia-smi says this."""

    def node(lists, status=0, **variables):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n[ \"$1\" = -L ] || exit 9\ncat <<'END'\n{lists}END\nexit {status}\n")
        program.chmod(0o755)
        return {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"} | variables

    return node


@pytest.mark.parametrize(
    ("lists", "given", "visible"),
    [
        (TWO, "GPU-bbbb-2", "GPU-bbbb-2"),
        (TWO, "GPU-bbbb-2", "GPU-bbbb"),
        (TWO, "GPU-bbbb-2", "1"),
        (TWO, "GPU-aaaa-1,GPU-bbbb-2", None),  # as docker shows them
        (SLICED, "MIG-dddd-2", "MIG-dddd-2"),
        (SLICED, "MIG-cccc-1,GPU-bbbb-2", "MIG-cccc-1,GPU-bbbb-2"),
        ("", "all", None),
        ("", "", ""),
    ],
)
def test_what_was_given_is_seen(node, lists, given, visible):
    more = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    check(node(lists, NVIDIA_VISIBLE_DEVICES=given, **more))


@pytest.mark.parametrize(
    ("lists", "given", "visible", "says"),
    [
        (TWO, "GPU-bbbb-2", None, "would use GPU-aaaa-1 of other replicas, too"),
        (TWO, "GPU-bbbb-2", "GPU-aaaa-1", "was given the GPU GPU-bbbb-2, and sees GPU-aaaa-1 "),
        (TWO, "GPU-bbbb-2", "", "was given the GPU GPU-bbbb-2, and sees none "),
        (TWO, "GPU-eeee-9", "GPU-eeee-9", "and sees none "),  # it has fallen off the bus
        (SLICED, "MIG-cccc-1", None, "would use GPU-bbbb-2, MIG-dddd-2 of other replicas"),
    ],
)
def test_what_was_not_given_is_refused(node, lists, given, visible, says):
    more = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    with pytest.raises(SettingsError, match=says):
        check(node(lists, NVIDIA_VISIBLE_DEVICES=given, **more))


def test_a_driver_that_is_not_there(node, tmp_path):
    with pytest.raises(SettingsError, match="nvidia-smi -L fails: Failed to initialize NVML"):
        check(node("Failed to initialize NVML\n", 255, NVIDIA_VISIBLE_DEVICES="GPU-aaaa-1"))
    (tmp_path / "nvidia-smi").unlink()
    with pytest.raises(SettingsError, match="there is no nvidia-smi to see it by"):
        check({"PATH": str(tmp_path), "NVIDIA_VISIBLE_DEVICES": "GPU-aaaa-1"})


def test_a_container_on_another_gpu_does_not_serve(node, tmp_path):
    """The sidecar is told why, before anything of the model is read."""
    folder = source(tmp_path, "open('read', 'w')\ndef predict(x): return x")
    task = node(TWO, NVIDIA_VISIBLE_DEVICES="GPU-bbbb-2", CUDA_VISIBLE_DEVICES="GPU-aaaa-1")
    program = tmp_path / "nvidia-smi"  # which says nothing until there is a connection: then the reason goes over it
    until = f"#!/bin/sh\nfor _ in $(seq 6000); do [ -e '{tmp_path}/connected' ] && break; sleep 0.01; done\n"
    program.write_text(program.read_text().replace("#!/bin/sh\n", until))
    container = Container(tmp_path, "-m", "topsail.runtime", str(folder), **task)
    with container.accept() as peer:
        peer.greet()
        container.touch("connected")
        while (frame := peer.next()) is not None and b"given the GPU GPU-bbbb-2" not in bytes(frame.body):
            pass
        assert frame is not None
    assert container.ends() != 0
    assert not (folder / "read").exists()
