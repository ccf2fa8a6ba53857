"""Deploying models whose inputs have names: what is said of them, and that they are asked by them."""

import pytest

import topsail
from topsail import bundle
from topsail.container.signature import Signature, Tensor
from topsail.deploy.failure import DeployFailed
from topsail.deploy.named import read_named, tensor
from topsail.optional import numpy

EXAMPLE = {"text": "red", "sizes": [1.0, 2.5], "count": 3, "raw": b"\x00\xff", "flag": True, "more": {"a": [1, "b"]}}
INPUTS = (
    Tensor("text", "string"),
    Tensor("sizes", "float64", (2,)),
    Tensor("count", "int64"),
    Tensor("raw", "bytes"),
    Tensor("flag", "bool"),
    Tensor("more", "json"),
)


@pytest.fixture
def deploy(client):
    def deploy(func, example=EXAMPLE, **terms):
        return topsail.deploy_python_function("named", func, example=example, client=client, progress=False, **terms)

    return deploy


def only_bundle(management):
    [data] = management.artifacts.values()
    return bundle.read(data)


def describe(inputs):
    return [
        {"label": f"{x['text']} {len(x['raw'])} {x['more']['a'][1]}", "sum": sum(x["sizes"]) * x["count"]}
        for x in inputs
    ]


def test_a_function_of_dicts(deploy, management):
    """The version and the app have the signature, and the app is asked by its names."""
    deployed = deploy(describe)
    manifest = only_bundle(management).manifest
    assert manifest.signature == Signature(INPUTS, (Tensor("label", "string"), Tensor("sum", "float64")))
    assert (manifest.input_type, manifest.input_length) == ("tensors", 0)
    assert manifest.example == EXAMPLE | {"raw": "AP8="}
    document = manifest.signature.document()
    assert management.versions["named"]["1"]["signature"] == management.apps["named"]["signature"] == document
    assert management.apps["named"]["input_type"] == "tensors"
    answer = deployed.predict(EXAMPLE | {"text": "blue", "raw": bytes(3)})
    assert answer.outputs == {"label": "blue 3 b", "sum": 10.5}
    assert answer.output == "blue 3 b"


def test_what_cannot_be_run_here_leaves_the_outputs_open(deploy, management):
    """Classes and names have to load first, and a function may fail on the example: then the trial says why."""

    class Describer:
        def predict(self, inputs):
            return describe(inputs)

    assert deploy(Describer).predict(EXAMPLE).output == {"label": "red 2 b", "sum": 10.5}
    assert only_bundle(management).manifest.signature == Signature(INPUTS)
    with pytest.raises(DeployFailed, match="the model fails on the example: KeyError: 'colour'"):
        deploy(lambda xs: [x["colour"] for x in xs])


@pytest.mark.skipif(numpy is None, reason="needs numpy")
def test_a_function_of_arrays(deploy, management):
    def scale(inputs):
        return {"scaled": inputs["x"] * inputs["factor"]}

    scale.batched = True
    example = {"x": numpy.ones(2, "float32"), "factor": numpy.full(1, 2, "float32")}
    deployed = deploy(scale, example)
    assert only_bundle(management).manifest.signature == Signature(
        (Tensor("x", "float32", (2,)), Tensor("factor", "float32", (1,))), (Tensor("scaled", "float32", (-1,)),)
    )
    assert deployed.predict({"x": numpy.array([1.0, 3.0]), "factor": [2]}).output == [2.0, 6.0]


@pytest.mark.parametrize(
    ("example", "says"),
    [
        ({"": 1.0}, "a name has 1 to 255 bytes"),
        ({"x": float("nan")}, "the example cannot be an input: Out of range float"),
        ({f"x{i}": 1.0 for i in range(65)}, "the signature has more than 64 inputs"),
        ({"x": object()}, "the example cannot be an input|the example is no input"),
    ],
)
def test_examples_that_are_refused(deploy, management, example, says):
    with pytest.raises(DeployFailed, match=says):
        deploy(describe, example)
    assert management.did() == []


def test_input_types_are_for_vectors(deploy):
    with pytest.raises(DeployFailed, match="inputs with names are tensors, and input_type is 'doubles': leave it out"):
        deploy(describe, input_type="doubles")


def test_an_example_for_inputs_that_the_model_names():
    own = Signature((Tensor("a", "float32", (-1,)), Tensor("b", "string")))
    assert read_named({"a": [1, 2], "b": "x"}, None, own).value == {"a": [1, 2], "b": "x"}
    assert read_named(None, None, own).value is None
    with pytest.raises(DeployFailed, match=r"must be a dict with 'a', 'b': the model takes a float32\[-1\], b string"):
        read_named({"a": [1, 2]}, None, own)
    with pytest.raises(DeployFailed, match=r"'a' must be float32\[-1\], and has shape \[\]"):
        read_named({"a": 1, "b": "x"}, None, own)


@pytest.mark.parametrize(
    ("value", "kind", "shape"),
    [
        (1, "int64", ()),
        (1.5, "float64", ()),
        ([1, 2.5], "float64", (2,)),
        ([[1], [2]], "int64", (2, 1)),
        (["a", "b"], "string", (2,)),
        ([[1], [2, 3]], "json", ()),
        ([], "json", ()),
        (None, "json", ()),
    ],
)
def test_types_of_values(value, kind, shape):
    assert tensor("x", value) == Tensor("x", kind, shape)


def test_models_of_one_vector_say_what_to_do(client):
    with pytest.raises(DeployFailed, match="the example is a dict, and this model takes one vector or text: give"):
        topsail.deploy_r("forecast", "forecast.R", {"x": 1.0}, client=client)
