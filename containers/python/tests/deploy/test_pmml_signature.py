"""The signature of a PMML model. In Java, PmmlSignatureTest has the evaluator answer by the same names."""

from pathlib import Path

import pytest

from topsail.container import signature
from topsail.container.signature import Tensor
from topsail.deploy import pmml_signature
from topsail.deploy.failure import DeployFailed

REPOSITORY = Path(__file__).resolve().parents[4]
SIGNATURES = REPOSITORY / "containers/jvm/src/test/resources/signatures"
EXAMPLES = REPOSITORY / "examples/pmml"


@pytest.mark.parametrize("wanted", sorted(SIGNATURES.glob("*.json")), ids=lambda path: path.stem)
def test_names_and_types_are_those_of_the_evaluator(wanted: Path) -> None:
    name = wanted.with_suffix(".pmml").name
    model = SIGNATURES / name if (SIGNATURES / name).exists() else EXAMPLES / name
    assert pmml_signature.read(model.read_bytes()) == signature.parse(wanted.read_text())


def document(schema: str, *, function: str = "regression", type: str = "double", more: str = "") -> bytes:
    return f"""<PMML version="4.4"><Header/><DataDictionary><DataField name="x" dataType="double"/>
        <DataField name="y" dataType="{type}"/></DataDictionary>
        <RegressionModel functionName="{function}"><MiningSchema>{schema}</MiningSchema>{more}</RegressionModel>
        </PMML>""".encode()


X = '<MiningField name="x"/>'
Y = '<MiningField name="y" usageType="predicted"/>'


def outputs(schema: str, **more: str) -> tuple[Tensor, ...]:
    return pmml_signature.read(document(schema, **more)).outputs


def test_a_regression_may_fall_between_two_integers() -> None:
    assert outputs(X + Y, type="integer") == (Tensor("y", "float64"),)
    assert outputs(X + Y, type="float") == (Tensor("y", "float32"),)
    assert outputs(X + Y, type="integer", function="classification") == (Tensor("y", "int64"),)


def test_an_output_with_the_targets_name_is_there_once() -> None:
    named = '<Output><OutputField name="y"/><OutputField name="p" feature="probability"/></Output>'
    assert outputs(X + Y, more=named) == (Tensor("y", "float64"), Tensor("p", "float64"))


def test_without_target_and_output_the_outputs_are_not_checked() -> None:
    assert outputs(X) == ()


def test_parts_of_a_model_and_later_models_have_no_say() -> None:
    other = '<TreeModel><MiningSchema><MiningField name="z"/></MiningSchema></TreeModel>'
    model = document(X + Y, more=f"<Segmentation><Segment>{other}</Segment></Segmentation>")
    assert pmml_signature.read(model) == pmml_signature.read(model.replace(b"</PMML>", f"{other}</PMML>".encode()))
    assert [t.name for t in pmml_signature.read(model).inputs] == ["x"]


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16", "windows-1252"])
def test_the_file_says_its_encoding(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + document(X).decode().replace('name="x"', 'name="größe"')
    assert pmml_signature.read(text.encode(encoding)).inputs == (Tensor("größe", "float64"),)


def test_characters_that_xml_escapes_are_no_entities() -> None:
    assert pmml_signature.read(document(X).replace(b'name="x"', b'name="a&lt;&#66;"')).inputs[0].name == "a<B"


@pytest.mark.parametrize(
    ("why", "pmml"),
    [
        ("has a document type", b"<!DOCTYPE PMML SYSTEM 'http://127.0.0.1:9/x'>" + document(X)),
        ("has a document type", b"<!DOCTYPE PMML [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><PMML>&b;</PMML>"),
        ("is not XML that can be read", b"<PMML>&x;</PMML>"),
        ("is not XML that can be read", b""),
        ("is not XML that can be read", b"<PMML>"),
        ("is not XML that can be read", b"<?xml version='1.0' encoding='klingon'?><PMML/>"),
        ("is not PMML: its first element is html", b"<html/>"),
        ("nested more than 512 deep", b"<PMML>" + b"<a>" * 600),
        ("more than 128 MiB", bytes((128 << 20) + 1)),
        ("no model with active fields", b"<PMML/>"),
        ("no model with active fields", document(Y)),
        ("'z' of the MiningSchema is not in the DataDictionary", document('<MiningField name="z"/>')),
        ("has 65 active fields, and a signature at most 64", document(X * 65)),
    ],
)
def test_what_cannot_be_read_is_named(why: str, pmml: bytes) -> None:
    with pytest.raises(DeployFailed) as e:
        pmml_signature.read(pmml)
    assert why in str(e.value)
