"""What deployers say of GPUs and of a cluster."""

import pytest

import topsail
from topsail.bundle import PYTHON, Manifest, build
from topsail.deploy import requirements, rollout
from topsail.deploy.failure import DeployFailed
from topsail.deploy.terms import Terms


def members(**given):
    return Terms.of(given).of_version()


def test_gpus_in_short():
    assert members(gpus=2)["resources"] == {"gpu": {"count": 2}}
    said = members(gpus=1, gpu_memory=16000, resources={"cpu": 100, "gpu": {"device": "nvidia/gpu/1g.10gb"}})
    assert said["resources"] == {"cpu": 100, "gpu": {"device": "nvidia/gpu/1g.10gb", "count": 1, "memory_mb": 16000}}
    assert "resources" not in members()
    with pytest.raises(DeployFailed, match="gpu_memory is of each GPU: say how many with gpus="):
        Terms.of({"gpu_memory": 8000})
    with pytest.raises(DeployFailed, match="gpus is the host's"):
        Terms.of({"gpus": 1, "hosted_by": "small"})


def test_what_a_model_with_cuda_gets():
    assert Terms.of({}).with_gpu().of_version()["resources"] == {"gpu": {"count": 1}}
    assert Terms.of({"gpus": 0}).with_gpu().of_version()["resources"] == {"gpu": {"count": 0}}
    assert "resources" not in Terms.of({"hosted_by": "small"}).with_gpu().of_version()


def test_what_a_cluster_is_told(client, management, monkeypatch):
    monkeypatch.setattr(rollout.trial, "run", lambda *_: {"seconds": 0.0, "on_cpu_instead": True})
    made = build(Manifest("python", "model:predict", PYTHON, (), input_type="doubles"), {"model.py": b""})
    said = []
    artifact = {"source": "https://models.example/w.bin", "checksum": "sha256:" + "0" * 64}
    more = {"driver": "docker", "artifacts": [artifact], "secrets": {"TOKEN": "token"}}
    topsail.deploy_bundle("net", made, client=client, progress=said.append, gpus=1, **more)
    body = next(h.json for h in management.heard if h.path.endswith("/net/versions") and h.method == "POST")
    assert body["resources"] == {"gpu": {"count": 1}}
    assert {k: body[k] for k in more} == more
    assert any("on the CPU for lack of a GPU" in line for line in said)


def test_packages_for_a_gpu(monkeypatch):
    monkeypatch.setattr(requirements.metadata, "version", lambda _: "1.5.0+cpu")
    assert requirements.pinned({"onnxruntime", "torch"}) == ("onnxruntime==1.5.0", "torch==1.5.0")
    assert requirements.pinned({"onnxruntime", "tensorflow-cpu"}, cuda=True) == (
        "onnxruntime-gpu[cuda,cudnn]<=1.5.0",  # which may lack that one
        "tensorflow[and-cuda]==1.5.0",
    )
    assert requirements.pinned({"onnxruntime-gpu"}, cuda=True) == ("onnxruntime-gpu[cuda,cudnn]==1.5.0",)
    mine = "onnxruntime-gpu==1.4.0"
    assert requirements.pinned({"onnxruntime"}, [mine], cuda=True) == (mine,)
