"""SavedModels, by a package that has as much of TensorFlow as the runtime uses."""

import sys

import pytest
from bundles import unpacked
from sidecar import HERE

from topsail import testing
from topsail.container.signature import Signature, Tensor
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.tensorflow import signature_of


@pytest.fixture(autouse=True)
def fake(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(HERE / "fakes"))
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
    yield
    sys.modules.pop("tensorflow", None)


def loaded(tmp_path, signatures, named=None, **options):
    content = {"model/saved_model.pb": f"signatures = {signatures}".encode()}
    said = {"options": options, "signature": named}
    return load(Folder(unpacked(tmp_path, "tensorflow", "model", content, **said)))


def one(inputs, outputs, call, name="serving_default"):
    return f'{{"{name}": Function({{{inputs}}}, {{{outputs}}}, {call})}}'


def outputs(model, inputs, kind="doubles"):
    answers = testing.run(model, inputs, kind)
    return [a.output if a.error is None else a.error for a in answers]


TOTAL = one('"x": TensorSpec([None, 3])', '"y": TensorSpec([None])', 'lambda x: {"y": x.sum(axis=1)}')


def test_a_model(tmp_path):
    """Queries of doubles for a model of single precision."""
    model = loaded(tmp_path, TOTAL)
    assert outputs(model, [[1, 2, 3], [4, 5, 6]]) == [6.0, 15.0]
    assert outputs(model, [[1, 2]]) == ["ValueError: cannot reshape array of size 2 into shape (1,3)"]
    assert (tmp_path / "devices").read_text().split() == ["/CPU:0"]


def test_shapes_that_travel_flat(tmp_path):
    call = 'lambda x: {"y": x.sum(axis=(1, 2))}'
    assert outputs(loaded(tmp_path, one('"x": TensorSpec([None, 2, 2])', '"y": 0', call)), [[1, 2, 3, 4]]) == [10.0]
    open_shape = one('"x": TensorSpec([None, None, None])', '"y": 0', call)
    assert outputs(loaded(tmp_path, open_shape, shape="2,2"), [[1, 2, 3, 4]]) == [10.0]
    unknown = one('"x": TensorSpec(None)', '"y": 0', 'lambda x: {"y": x.sum(axis=1)}')
    assert outputs(loaded(tmp_path, unknown), [[1, 2, 3, 4]]) == [10.0]


def test_a_model_for_one_input_at_a_time(tmp_path):
    call = 'lambda x: {"y": x.sum(axis=1) + len(x)}'
    assert outputs(loaded(tmp_path, one('"x": TensorSpec([1, 2])', '"y": 0', call)), [[1, 2], [3, 4]]) == [4.0, 8.0]


def test_a_model_for_some_inputs_at_a_time(tmp_path):
    """The last ones are filled up, and no more is answered than was asked."""
    call = 'lambda x: {"y": x.sum(axis=1) + len(x)}'
    model = loaded(tmp_path, one('"x": TensorSpec([2, 2])', '"y": 0', call))
    assert outputs(model, [[1, 2], [3, 4], [5, 6]]) == [5.0, 9.0, 13.0]
    assert outputs(model, [[1, 2]]) == [5.0]


def test_numbers_that_the_type_does_not_have(tmp_path):
    model = loaded(tmp_path, one('"x": TensorSpec([None, 1], int64)', '"y": 0', 'lambda x: {"y": x[:, 0]}'))
    assert outputs(model, [[2.0]]) == [2]
    [found] = outputs(model, [[1.7]])
    assert found == "the model takes numbers of type int64, and 1.7 is none"


def test_texts(tmp_path):
    call = 'lambda x: {"y": np.array([t.upper() for t in x], dtype=object)}'
    model = loaded(tmp_path, one('"x": TensorSpec([None], string)', '"y": 0', call))
    assert outputs(model, ["a", "é"], "strings") == ["A", "é"]  # whose bytes Python's upper leaves alone
    assert outputs(model, [b"raw"], "bytes") == ["RAW"]
    assert outputs(model, [[1.0]]) == ["ValueError: the model takes texts or bytes, and no numbers"]
    column = one('"x": TensorSpec([None, 1], string)', '"y": 0', 'lambda x: {"y": x}')
    assert outputs(loaded(tmp_path, column), ["a", "b"], "strings") == [["a"], ["b"]]


def test_which_signature_and_output(tmp_path):
    call = 'lambda x: {"low": x.min(axis=1), "half": x.max(axis=1).astype("float16")}'
    two = one('"x": TensorSpec([None, 2])', '"low": 0, "half": 0', call, "both")
    assert outputs(loaded(tmp_path, two, signature="both", output="low"), [[1, 2]]) == [1.0]
    assert outputs(loaded(tmp_path, two, signature="both", output="half"), [[1, 2]]) == [2.0]
    for options, says in {
        (): "the model has no signature 'serving_default': it has both",
        (("signature", "both"),): "the signature has the outputs half, low: name one as the option output",
        (("signature", "both"), ("output", "high")): "the model has no output 'high': it has half, low",
    }.items():
        with pytest.raises(PermanentFailure, match=says):
            loaded(tmp_path, two, **dict(options))


PAIR = one(
    '"x": TensorSpec([None, 2]), "text": TensorSpec([None, None], string)',
    '"half": TensorSpec([None], float16), "again": TensorSpec([None, None], string)',
    """lambda x, text: {
        "half": x.sum(axis=1).astype("float16"), "again": np.array([[t.encode() for t in row] for row in text], object)
    }""",
)
NAMES = Signature(
    (Tensor("x", "float32", (2,)), Tensor("text", "string", (-1,))),
    (Tensor("half", "float16"), Tensor("again", "string", (-1,))),
)


def test_what_a_signature_says_of_itself(tmp_path):
    import tensorflow as tf

    (tmp_path / "saved_model.pb").write_text(f"signatures = {PAIR}")
    assert signature_of(tf.saved_model.load(tmp_path), "serving_default") == NAMES
    (tmp_path / "saved_model.pb").write_text(
        "signatures = " + PAIR.replace("TensorSpec([None], f", "TensorSpec(None, f")
    )
    assert signature_of(tf.saved_model.load(tmp_path), "serving_default") == Signature(NAMES.inputs)
    (tmp_path / "saved_model.pb").write_text("signatures = " + one('"x": TensorSpec(None)', "", "None"))
    with pytest.raises(PermanentFailure, match="the input 'x' of the signature is a float32 of shape"):
        signature_of(tf.saved_model.load(tmp_path), "serving_default")


@pytest.mark.parametrize("batch", ["None", "1", "3"])
def test_inputs_and_outputs_by_their_names(tmp_path, batch):
    """Also of a model for one query at a time."""
    served = loaded(tmp_path, PAIR.replace("TensorSpec([None", f"TensorSpec([{batch}"), NAMES)
    answers = testing.run(served, [{"x": [1, 2], "text": ["a", "é"]}, {"x": [3, 4], "text": ["b", "c"]}])
    assert [a.outputs for a in answers] == [{"half": 3.0, "again": ["a", "é"]}, {"half": 7.0, "again": ["b", "c"]}]


def test_some_of_the_named_outputs(tmp_path):
    served = loaded(tmp_path, PAIR, Signature(NAMES.inputs, NAMES.outputs[1:]))
    assert testing.run(served, [{"x": [1, 2], "text": ["a"]}])[0].outputs == {"again": ["a"]}
    with pytest.raises(PermanentFailure, match="the signature has the inputs text, and the model takes text, x"):
        loaded(tmp_path, PAIR, Signature(NAMES.inputs[1:]))


@pytest.mark.parametrize(
    ("signatures", "options", "says"),
    [
        ("{}", {}, "has no signature 'serving_default': it has none"),
        (one('"a": 0, "b": 0', '"y": 0', "None"), {}, r"the signature has 2 inputs \(a, b\): give a dict"),
        (one('"x": TensorSpec([])', '"y": 0', "None"), {}, "first dimensions are 0 for 'x': export it with"),
        (TOTAL, {"device": "tpu"}, "the option device = 'tpu' is unknown"),
        (TOTAL, {"device": "cuda"}, "the option device is cuda, and TensorFlow 0.fake finds no GPU here: use a node"),
        (TOTAL, {"shape": "2x2"}, "the option shape = '2x2' is none"),
        (TOTAL, {"threads": "many"}, "the option threads = 'many' is no number of threads"),
    ],
)
def test_what_cannot_be_served(tmp_path, signatures, options, says):
    with pytest.raises(PermanentFailure, match=says):
        loaded(tmp_path, signatures, **options)


def test_what_is_no_saved_model(tmp_path):
    folder = unpacked(tmp_path, "tensorflow", "model", {"model/model.keras": b""})
    with pytest.raises(
        PermanentFailure, match="TensorFlow 0.fake cannot load model as a SavedModel: SavedModel file does not"
    ):
        load(Folder(folder))


def test_a_trial_is_content_with_the_cpu(tmp_path, monkeypatch):
    content = {"model/saved_model.pb": f"signatures = {TOTAL}".encode()}
    folder = Folder(unpacked(tmp_path, "tensorflow", "model", content, options={"device": "cuda"}), trial=True)
    assert outputs(load(folder), [[1, 2, 3]]) == [6.0]
    assert folder.on_cpu_instead
    assert (tmp_path / "devices").read_text().split() == ["/CPU:0"]


def test_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_GPU", "1")
    assert outputs(loaded(tmp_path, TOTAL, device="auto"), [[1, 2, 3]]) == [6.0]
    assert outputs(loaded(tmp_path, TOTAL), [[1, 2, 3]]) == [6.0]
    assert (tmp_path / "devices").read_text().split() == ["/GPU:0", "/CPU:0"]
