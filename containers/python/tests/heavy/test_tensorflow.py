"""TensorFlow: real SavedModels, deployed and run on the CPU."""

import numpy as np
import pytest
import tensorflow as tf
from bundles import unpacked
from sidecar import Container

import topsail
from topsail import bundle, testing
from topsail.container.signature import Tensor
from topsail.deploy.failure import DeployFailed
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load

WEIGHTS = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], "float32")


def linear():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2, use_bias=False)])
    model.set_weights([WEIGHTS])
    return model


class Pixels(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, None, None], tf.float32)])
    def __call__(self, pictures):
        return {"sum": tf.reduce_sum(pictures, [1, 2]), "most": tf.cast(tf.reduce_max(pictures, [1, 2]), tf.bfloat16)}


class Words(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def upper(self, texts):
        return {"upper": tf.strings.upper(texts, "utf-8")}


class Pair(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "a"), tf.TensorSpec([None], tf.string, "b")])
    def __call__(self, a, b):
        return {"twice": 2 * a, "length": tf.strings.length(b), "b": b}


def saved(tmp_path, module, **options):
    """A SavedModel in a bundle, as a model that is served."""
    place = tmp_path / "saved"
    signatures = {"up": module.upper} if isinstance(module, Words) else None
    tf.saved_model.save(module, str(place), signatures=signatures)
    return packed(tmp_path, place, **options)


def packed(tmp_path, place, **options):
    files = {f"m/{p.relative_to(place).as_posix()}": p.read_bytes() for p in place.rglob("*") if p.is_file()}
    return load(Folder(unpacked(tmp_path, "tensorflow", "m", files, options=options)))


def outputs(model, inputs, kind="doubles"):
    answers = testing.run(model, inputs, kind)
    assert [a.error for a in answers if a.error] == []
    return [a.output for a in answers]


@pytest.fixture
def deploy(client):
    def deploy(model, example, **terms):
        return topsail.deploy_tensorflow("net", model, example, client=client, progress=False, **terms)

    return deploy


def test_a_model_of_keras(deploy, management):
    deployed = deploy(linear(), np.array([1.0, 0.0, 0.0], "float32"))
    assert deployed.predict([1, 1, 1]).output == [6.0, 60.0]
    [data] = management.artifacts.values()
    manifest = bundle.read(data).manifest
    assert (manifest.runtime, manifest.entry, manifest.input_type, manifest.input_length) == (
        "tensorflow",
        "model",
        "floats",
        3,
    )
    names = {r.partition("==")[0].replace("_", "-").lower() for r in manifest.requirements}
    assert "numpy" in names and names <= {"numpy", "tensorflow", "tensorflow-cpu"} and len(names) == 2


def test_a_saved_model_by_its_folder(deploy, tmp_path):
    linear().export(str(tmp_path / "saved"), verbose=False)
    assert deploy(tmp_path / "saved", [1.0, 0.0, 0.0]).predict([1, 1, 1]).output == [6.0, 60.0]  # of doubles


def test_a_picture(deploy, management):
    picture = np.arange(4, dtype="float32").reshape(2, 2)
    deployed = deploy(Pixels(), picture, output="sum")
    assert deployed.predict(picture).output == 6.0
    [data] = management.artifacts.values()
    assert bundle.read(data).manifest.options == {"output": "sum", "shape": "2,2"}


def test_what_numpy_has_no_type_for(tmp_path):
    assert outputs(saved(tmp_path, Pixels(), output="most", shape="2,2"), [[1, 2, 3, 4]]) == [4.0]


def test_texts(tmp_path):
    assert outputs(saved(tmp_path, Words(), signature="up"), ["a", "é"], "strings") == ["A", "É"]


def test_inputs_and_outputs_by_their_names(deploy, management):
    """With an example or without one; bytes are what the example has as such."""
    outputs = (Tensor("b", "string"), Tensor("length", "int32"), Tensor("twice", "float32"))
    deployed = deploy(Pair(), None)
    assert deployed.predict({"a": 1.5, "b": "red"}).outputs == {"b": "red", "length": 3, "twice": 3.0}
    [data] = management.artifacts.values()
    said = bundle.read(data).manifest.signature
    assert set(said.inputs) == {Tensor("a", "float32"), Tensor("b", "string")}  # in no order of TensorFlow's
    assert set(said.outputs) == set(outputs)
    deployed = deploy(Pair(), {"a": 1, "b": b"\x00\xff"}, output="length", app="bytes")
    assert deployed.predict({"a": 1, "b": b"\xff"}).outputs == {"length": 1}


def test_scores_of_classes(deploy):
    """By what the deployer says of the output, which stays as it is; also with names."""
    said = {"scores": "softmax", "classes": ["no", "yes"]}
    x = np.array([1.0, 0.0, 0.0], "float32")
    deployed = deploy(linear(), x, **said)
    answer = deployed.predict([0.1, 0, 0])
    assert answer.output == pytest.approx([0.1, 1.0])
    assert answer.confidence == pytest.approx(1 / (1 + np.exp(-0.9)))
    assert list(answer.qualifiers["scores"]) == ["no", "yes"]
    named = deploy(linear(), None, app="named", **said)
    [given] = named.client.apps.get("named").signature["inputs"]
    answer = named.predict({given["name"]: [0.1, 0, 0]})
    assert answer.outputs == {"output_0": pytest.approx([0.1, 1.0])}
    assert answer.confidence == pytest.approx(1 / (1 + np.exp(-0.9)))
    assert deploy(linear(), x).predict([1, 1, 1]).confidence is None
    with pytest.raises(DeployFailed, match="there are 3 classes, and the output has 2 numbers"):
        deploy(linear(), x, scores="softmax", classes="abc")
    with pytest.raises(DeployFailed, match="scores is 'logits': use 'softmax' or 'probabilities'"):
        deploy(linear(), x, scores="logits")


@pytest.fixture
def frozen(tmp_path):
    """The file of a frozen graph with two inputs, of TensorFlow 1: sum of the first, added to the second."""
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], "x")
        b = tf.compat.v1.placeholder(tf.float32, [None], "b")
        tf.add(tf.reduce_sum(x * tf.constant([1.0, 10.0]), axis=1), b, name="both")
        tf.nn.softmax(x, name="layer/p")
    path = tmp_path / "frozen.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def test_a_frozen_graph(deploy, frozen, management):
    """Only what leads to the outputs is asked for."""
    example = np.array([0.0, 0.0], "float32")
    deployed = deploy(frozen, example, inputs="x:0", outputs="layer/p:0", scores="probabilities")
    answer = deployed.predict([1.0, 3.0])
    assert answer.output == pytest.approx(tf.nn.softmax([1.0, 3.0]).numpy().tolist())
    assert answer.confidence == pytest.approx(max(answer.output))
    [data] = management.artifacts.values()
    manifest = bundle.read(data).manifest
    assert (manifest.entry, manifest.options["inputs"]) == ("model.pb", '{"x": "x:0"}')
    assert manifest.options["outputs"] == '{"layer/p": "layer/p:0"}'


def test_several_inputs_of_a_frozen_graph(deploy, frozen):
    deployed = deploy(frozen, inputs={"row": "x:0", "b": "b"}, outputs=["both:0", "layer/p"], example=None)
    answer = deployed.predict({"row": [1, 2], "b": 0.5})
    assert answer.outputs["both"] == 21.5
    assert answer.outputs["layer/p"] == pytest.approx(tf.nn.softmax([1.0, 2.0]).numpy().tolist())


def test_a_graph_of_tensorflow_2(deploy, tmp_path):
    """Frozen by TensorFlow itself, from a model with variables."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    model = linear()
    function = tf.function(lambda x: model(x)).get_concrete_function(tf.TensorSpec([None, 3], tf.float32, "x"))
    constant = convert_variables_to_constants_v2(function)
    path = tmp_path / "frozen.pb"
    path.write_bytes(constant.graph.as_graph_def().SerializeToString())
    deployed = deploy(path, [1.0, 0.0, 0.0], inputs=constant.inputs[0].name, outputs=constant.outputs[0].name)
    assert deployed.predict([1, 1, 1]).output == [6.0, 60.0]


def test_a_frozen_graph_that_names_its_tensors_itself(tmp_path, frozen):
    """As one that comes by a message: fed at its placeholders, and read where nothing else takes the output."""
    folder = unpacked(tmp_path, "tensorflow", "frozen.pb", {"frozen.pb": frozen.read_bytes()})
    with pytest.raises(PermanentFailure, match="the signature has 2 inputs"):
        load(Folder(folder))
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2], "x")
        tf.nn.softmax(x * tf.constant([1.0, 10.0]), name="layer/p")
    folder = unpacked(tmp_path, "tensorflow", "frozen.pb", {"frozen.pb": graph.as_graph_def().SerializeToString()})
    [answer] = testing.run(load(Folder(folder)), [[1.0, 0.5]], "doubles")
    assert answer.output == pytest.approx(tf.nn.softmax([1.0, 5.0]).numpy().tolist())


def test_frozen_graphs_that_cannot_be_served(deploy, frozen, tmp_path):
    for said, says in [
        ({}, "is a file, as a frozen graph is: name its tensors with inputs= and outputs="),
        ({"inputs": "x", "outputs": "none"}, "the graph has no tensor 'none'"),
        ({"inputs": "x", "outputs": "both"}, "need other inputs than those named"),
    ]:
        with pytest.raises(DeployFailed, match=says):
            deploy(frozen, None, **said)
    (tmp_path / "junk.pb").write_bytes(b"junk")
    with pytest.raises(DeployFailed, match="cannot load junk.pb as a frozen graph"):
        deploy(tmp_path / "junk.pb", None, inputs="x", outputs="y")
    with tf.Graph().as_default() as graph:
        tf.compat.v1.get_variable("w", [2])
    (tmp_path / "open.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(DeployFailed, match="is not frozen: it has the variable 'w', and only its name"):
        deploy(tmp_path / "open.pb", None, inputs="x", outputs="y")
    with pytest.raises(DeployFailed, match="name the tensors of a frozen graph, a file: a SavedModel has a signature"):
        deploy(linear(), None, inputs="x")
    with pytest.raises(PermanentFailure, match="the option outputs = '' must name tensors"):
        load(Folder(unpacked(tmp_path, "tensorflow", "m.pb", {"m.pb": b""}, options={"inputs": '{"x": "x"}'})))


def test_what_cannot_be_served(tmp_path, deploy):
    with pytest.raises(PermanentFailure, match=r"the signature has 2 inputs \(a, b\): give a dict"):
        saved(tmp_path, Pair())
    with pytest.raises(PermanentFailure, match="has no signature 'serving_default': it has up"):
        saved(tmp_path, Words())
    with pytest.raises(PermanentFailure, match="cannot load m.pb as a frozen graph"):
        load(Folder(unpacked(tmp_path, "tensorflow", "m.pb", {"m.pb": b"junk"})))
    with pytest.raises(PermanentFailure, match="cannot load junk as a SavedModel"):
        load(Folder(unpacked(tmp_path / "junk", "tensorflow", "junk", {"junk/saved_model.pb": b"junk"})))
    with pytest.raises(DeployFailed, match="is no SavedModel: give its folder, a model of Keras, or a tf.Module"):
        deploy(tmp_path, [1.0])
    with pytest.raises(DeployFailed, match="fails on the example|the model fails on"):
        deploy(linear(), [1.0] * 5)


def test_served_by_a_process(tmp_path):
    place = tmp_path / "saved"
    linear().export(str(place), verbose=False)
    files = {f"m/{p.relative_to(place).as_posix()}": p.read_bytes() for p in place.rglob("*") if p.is_file()}
    folder = unpacked(tmp_path, "tensorflow", "m", files, options={"output": "output_0"})
    with Container(tmp_path, "-m", "topsail.runtime", str(folder)) as container:
        container.listener.settimeout(60)
        with container.accept() as peer:
            peer.sock.settimeout(60)
            peer.ready().ask([1, 1, 1], [0, 0, 1])
            assert [e.status for e in peer.answer()] == [0, 0]


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="for machines without a GPU")
def test_a_model_for_a_gpu_from_a_machine_without_one(tmp_path, deploy, management):
    """It is tried on the CPU, asks for a GPU, and does not go on without one where it is served."""
    deploy(linear(), np.ones(3, "float32"), device="cuda")
    [data] = management.artifacts.values()
    made = bundle.read(data)
    assert management.versions["net"]["1"]["resources"] == {"gpu": {"count": 1}}
    assert any(r.startswith("tensorflow[and-cuda]==") for r in made.manifest.requirements)
    made.unpack(tmp_path / "net")
    with pytest.raises(
        PermanentFailure, match=r"device is cuda, and TensorFlow \S+ (is a build for the CPU|finds no GPU here)"
    ):
        load(Folder(tmp_path / "net"))
