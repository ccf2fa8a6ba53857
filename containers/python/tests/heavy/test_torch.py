"""PyTorch: real modules, as TorchScript, deployed and run on the CPU."""

import re

import pytest
import torch
from bundles import unpacked

import topsail
from topsail import bundle, testing
from topsail.container.signature import Signature, Tensor
from topsail.deploy.failure import DeployFailed
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load


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


class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(4, 2)
        with torch.no_grad():
            self.table.weight.copy_(torch.arange(8.0).reshape(4, 2))

    def forward(self, word, weights):
        return (self.table(word) * weights).sum(dim=1), word


class Names(Untraceable):
    def forward(self, x, y):
        return {"sum": x.sum(**{"dim": 1}), "y": y}


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


def test_inputs_and_outputs_by_their_names(deploy, management):
    deployed = deploy(Pair(), {"weights": [1.0, 2.0], "word": torch.tensor(3)})
    [data] = management.artifacts.values()
    assert bundle.read(data).manifest.signature == Signature(
        (Tensor("weights", "float64", (2,)), Tensor("word", "int64")),
        (Tensor("output_0", "float32"), Tensor("output_1", "int64")),
    )
    assert deployed.predict({"word": 1, "weights": [1, 10]}).outputs == {"output_0": 32.0, "output_1": 1}


def test_a_traced_module_with_outputs_of_its_own_names(deploy):
    x, y = torch.ones(3), torch.ones(2, dtype=torch.int32)
    assert deploy(Names(), {"y": y, "x": x}).predict({"x": [1, 2, 3], "y": [4, 5]}).outputs == {"sum": 6.0, "y": [4, 5]}


def test_names_that_forward_does_not_have(deploy):
    with pytest.raises(DeployFailed, match="the model fails on the example: .*(colour|received 4 argument)"):
        deploy(Pair(), {"word": torch.tensor(3), "weights": [1.0, 2.0], "colour": [1.0]})


def test_scores_of_classes(deploy):
    """By what the deployer says of the output, which stays as it is; also with names."""
    said = {"scores": "softmax", "classes": ["no", "yes"]}
    answer = deploy(linear(), torch.ones(3), **said).predict([0.1, 0, 0])
    assert answer.output == pytest.approx([0.1, 1.0])
    assert answer.confidence == pytest.approx(0.7109495)
    assert list(answer.qualifiers["scores"]) == ["no", "yes"]
    named = deploy(linear(), {"input": torch.ones(3)}, app="named", **said)
    assert named.predict({"input": [0.1, 0, 0]}).confidence == pytest.approx(0.7109495)
    assert deploy(linear(), torch.ones(3)).predict([1, 1, 1]).confidence is None
    with pytest.raises(DeployFailed, match="one output, and this one has output_0, output_1"):
        deploy(Pair(), {"weights": [1.0, 2.0], "word": torch.tensor(3)}, scores="softmax")


def test_what_cannot_be_served(tmp_path, deploy):
    with pytest.raises(PermanentFailure, match="cannot load m.pt as TorchScript"):
        load(Folder(unpacked(tmp_path, "torch", "m.pt", {"m.pt": b"junk"})))
    with pytest.raises(PermanentFailure, match="option shape = '2x2' is none"):
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
    with pytest.raises(PermanentFailure, match=re.escape(f"device is cuda, and PyTorch {torch.__version__} {says}")):
        load(Folder(tmp_path / "net"))
