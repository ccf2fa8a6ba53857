"""Deploying PMML models: what is asked of the service. Java evaluates them, so nothing is tried here."""

import pytest

import topsail
from topsail import bundle
from topsail.container.signature import Tensor
from topsail.deploy.failure import DeployFailed

PMML = b"""<PMML version="4.4"><DataDictionary>
  <DataField name="petal_length" dataType="double"/><DataField name="colour" dataType="string"/>
  <DataField name="species" dataType="string"/></DataDictionary>
  <TreeModel functionName="classification"><MiningSchema><MiningField name="petal_length"/><MiningField name="colour"/>
  <MiningField name="species" usageType="target"/></MiningSchema></TreeModel></PMML>"""
FIELDS = {"petal_length": 1.4, "colour": "blue"}


@pytest.fixture
def deploy(client, management):
    """Deploys without replicas, and returns the bundle."""

    def deploy(model, example=None, **terms):
        topsail.deploy_pmml("iris", model, example, client=client, progress=False, replicas=0, **terms)
        [data] = management.artifacts.values()
        return bundle.read(data)

    return deploy


def test_a_file_with_an_input_of_numbers(deploy, tmp_path):
    path = tmp_path / "iris-of-mine.pmml"
    path.write_bytes(PMML)
    packed = deploy(path, [5.1, 3.5, 1.4, 0.2], heap="1g")
    said = packed.manifest
    assert packed.files == {"model.pmml": PMML}
    assert (said.runtime, said.entry, said.python, said.requirements) == ("pmml", "model.pmml", "", ())
    assert (said.input_type, said.input_length, said.example) == ("doubles", 4, [5.1, 3.5, 1.4, 0.2])
    assert said.options == {"heap": "1g"}


@pytest.mark.parametrize(("example", "input_type"), [(None, None), (None, "tensors"), (FIELDS, "tensors")])
def test_inputs_by_the_names_of_fields(deploy, management, example, input_type):
    said = deploy(PMML, example, input_type=input_type).manifest
    assert said.signature.inputs == (Tensor("petal_length", "float64"), Tensor("colour", "string"))
    assert (said.input_type, said.input_length, said.example) == ("tensors", 0, example)
    assert management.apps["iris"]["signature"] == said.signature.document()
    with pytest.raises(DeployFailed, match="must be a dict with 'petal_length', 'colour': the model takes"):
        deploy(PMML, {"colour": "blue"}, input_type="tensors")


def test_texts_with_the_names_of_fields(deploy, management):
    said = deploy(PMML, FIELDS).manifest
    assert (said.input_type, said.input_length) == ("strings", 0)
    assert said.example == '{"petal_length": 1.4, "colour": "blue"}'
    assert said.options == {}
    assert management.apps["iris"]["input_type"] == "strings"


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"example": b"x"}, "takes numbers, or texts with a JSON object"),
        ({"model": "none.pmml"}, "the model 'none.pmml' cannot be read: No such file"),
        ({"heap": "lots"}, "is no amount of memory: write one like 512m or 2g"),
        ({"requirements": ["numpy==1.0"]}, "takes no python and no requirements"),
        ({"input_type": "bytes"}, "make them agree"),
    ],
)
def test_what_cannot_be_deployed(deploy, terms, says):
    with pytest.raises(DeployFailed, match=says):
        deploy(**({"model": PMML, "example": [1.0]} | terms))
