"""PyTorch: real modules, as TorchScript, deployed and run on the CPU."""

import re

import pytest
import torch
from bundles import unpacked

import topsail
from topsail import bundle, testing
from topsail.deploy.failure import DeployFailed
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.refusal import Refused


def linear():
    module = torch.nn.Linear(3, 2)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]))
        module.bias.zero_()
    return module


class Untraceable(torch.nn.Module):
    """What TorchScript cannot compile, and tracing can."""

    def forward(self, x):
        return x.sum(**{"dim": 1})


class Pixels(torch.nn.Module):
    def forward(self, x):
        return x.sum(dim=(1, 2)), x


class Words(torch.nn.Module):
    def forward(self, texts: list[str]) -> list[int]:
        return [len(text) for text in texts]


@pytest.fixture
def deploy(client):
    def deploy(module, example, **terms):
        return topsail.deploy_torch("net", module, example, client=client, progress=False, **terms)

    return deploy


def test_a_module(deploy, management):
    deployed = deploy(linear(), torch.tensor([1.0, 0.0, 0.0]))
    assert deployed.predict([1, 1, 1]).output == [6.0, 60.0]
    [data] = management.artifacts.values()
    manifest = bundle.read(data).manifest
    assert (manifest.runtime, manifest.entry, manifest.input_type, manifest.input_length) == (
        "torch",
        "model.pt",
        "floats",
        3,
    )
    assert {"torch", "numpy"} == {r.partition("==")[0] for r in manifest.requirements}
    assert not any("+" in r for r in manifest.requirements)


def test_doubles_become_what_the_weights_are(deploy):
    assert deploy(linear(), [1.0, 0.0, 0.0]).predict([1, 1, 1]).output == [6.0, 60.0]


def test_a_module_that_can_only_be_traced(deploy):
    assert deploy(Untraceable(), torch.tensor([1.0, 2.0])).predict([3, 4]).output == 7.0


def test_torchscript_as_it_is(deploy):
    assert deploy(torch.jit.script(linear()), torch.ones(3)).predict([1, 0, 0]).output == [1.0, 10.0]


def test_pictures_travel_flat_and_the_first_output_counts(deploy, management):
    picture = torch.arange(4.0).reshape(2, 2)
    deployed = deploy(Pixels(), picture)
    assert deployed.predict(picture).output == 6.0
    [data] = management.artifacts.values()
    assert bundle.read(data).manifest.options == {"shape": "2,2"}


def test_texts(tmp_path):
    path = tmp_path / "words.pt"
    torch.jit.script(Words()).save(str(path))
    folder = unpacked(tmp_path, "torch", "words.pt", {"words.pt": path.read_bytes()})
    assert [a.output for a in testing.run(load(Folder(folder)), ["a", "abc"], "strings")] == [1, 3]


def test_what_cannot_be_served(tmp_path, deploy):
    with pytest.raises(Refused, match="cannot load m.pt as TorchScript"):
        load(Folder(unpacked(tmp_path, "torch", "m.pt", {"m.pt": b"junk"})))
    with pytest.raises(Refused, match="option shape = '2x2' is none"):
        path = tmp_path / "linear.pt"
        torch.jit.script(linear()).save(str(path))
        load(Folder(unpacked(tmp_path, "torch", "m.pt", {"m.pt": path.read_bytes()}, options={"shape": "2x2"})))
    with pytest.raises(DeployFailed, match="fails on the example|the model fails on"):
        deploy(linear(), torch.ones(5))


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
def test_a_model_for_a_gpu_from_a_machine_without_one(tmp_path, deploy, management):
    """It is tried on the CPU, asks for a GPU, and does not go on without one where it is served."""
    deploy(linear(), torch.ones(3), device="cuda")
    [data] = management.artifacts.values()
    assert management.versions["net"]["1"]["resources"] == {"gpu": {"count": 1}}
    made = bundle.read(data)
    made.unpack(tmp_path / "net")
    says = "finds no GPU here: use a node with" if torch.version.cuda else "is a build for the CPU: require one"
    with pytest.raises(Refused, match=re.escape(f"device is cuda, and PyTorch {torch.__version__} {says}")):
        load(Folder(tmp_path / "net"))
