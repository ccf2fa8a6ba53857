"""ONNX models: real ones, deployed and run by onnxruntime."""

import os

import numpy as np
import onnx
import pytest
from bundles import unpacked
from onnx import TensorProto, helper, numpy_helper

import topsail
from topsail import bundle, testing
from topsail.container.signature import Signature, Tensor
from topsail.deploy.failure import DeployFailed
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load

WEIGHTS = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], "float32")


def linear(batch="n", dtype=TensorProto.FLOAT, weights=WEIGHTS):
    """x @ W, and the larger of the two as a second output."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("ArgMax", ["y"], ["k"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", dtype, [batch, weights.shape[0]])],
        [
            helper.make_tensor_value_info("y", dtype, [batch, weights.shape[1]]),
            helper.make_tensor_value_info("k", TensorProto.INT64, [batch]),
        ],
        [numpy_helper.from_array(weights, "w")],
    )
    return model(graph)


def image():
    """The sum of the pixels of pictures of 2 by 2."""
    axes = numpy_helper.from_array(np.array([1, 2], "int64"), "axes")
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    return model(helper.make_graph([node], "image", [x], [y], [axes]))


def model(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def loaded(tmp_path, model, signature=None, **options):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    said = {"options": options, "signature": signature}
    return load(Folder(unpacked(tmp_path, "onnx", "model.onnx", {"model.onnx": data}, **said)))


def outputs(model, inputs, kind="doubles"):
    answers = testing.run(model, inputs, kind)
    assert [a.error for a in answers if a.error] == []
    return [a.output for a in answers]


@pytest.mark.parametrize("give", ["object", "bytes", "path"])
def test_deployed(client, management, tmp_path, give):
    data = linear().SerializeToString()
    (tmp_path / "linear.onnx").write_bytes(data)
    given = {"object": linear(), "bytes": data, "path": tmp_path / "linear.onnx"}[give]
    deployed = topsail.deploy_onnx("linear", given, [1.0, 0.0, 0.0], client=client, progress=False)
    assert deployed.predict([1, 1, 1]).output == [6.0, 60.0]
    [stored] = management.artifacts.values()
    manifest = bundle.read(stored).manifest
    assert [r.partition("==")[0].removesuffix("-gpu") for r in manifest.requirements] == ["numpy", "onnxruntime"]


def test_an_output_by_its_name(client, tmp_path):
    deployed = topsail.deploy_onnx("linear", linear(), [1.0, 0.0, 0.0], output="k", client=client, progress=False)
    assert deployed.predict([1, 1, 1]).output == 1
    with pytest.raises(PermanentFailure, match="the model has no output 'z': it has y, k"):
        loaded(tmp_path, linear(), output="z")


@pytest.mark.parametrize("batch", ["n", 1])
def test_batches_of_any_size_and_models_for_one(tmp_path, batch):
    assert outputs(loaded(tmp_path, linear(batch)), [[1, 0, 0], [0, 1, 0]]) == [[1.0, 10.0], [2.0, 20.0]]


@pytest.mark.parametrize("kind", ["ints", "floats", "doubles", "bytes"])
def test_inputs_become_what_the_model_takes(tmp_path, kind):
    model = loaded(tmp_path, linear(dtype=TensorProto.DOUBLE, weights=WEIGHTS.astype("float64")))
    x = b"\x01\x00\x00" if kind == "bytes" else [1, 0, 0]
    assert outputs(model, [x], kind) == [[1.0, 10.0]]


def test_pictures_travel_flat(client):
    picture = np.arange(4, dtype="float32").reshape(2, 2)
    deployed = topsail.deploy_onnx("image", image(), picture, client=client, progress=False)
    assert deployed.predict(picture).output == 6.0
    assert deployed.client.predict("image", [1, 1, 1, 1]).output == 4.0


def test_what_is_no_model(tmp_path, client):
    with pytest.raises(PermanentFailure, match="cannot load model.onnx"):
        loaded(tmp_path, b"junk")
    with pytest.raises(DeployFailed, match="cannot be read: No such file"):
        topsail.deploy_onnx("x", tmp_path / "none.onnx", [1.0], client=client)
    with pytest.raises(DeployFailed, match="the model is a int: give a path, bytes, or an object of the package onnx"):
        topsail.deploy_onnx("x", 7, [1.0], client=client)
    with pytest.raises(PermanentFailure, match="the option threads = 'many' is no number of threads"):
        loaded(tmp_path, linear(), threads="many")


def pair(batch="n"):
    """Two numbers' sum, and a text again."""
    value = helper.make_tensor_value_info
    a, b = value("a", TensorProto.FLOAT, [batch, 2]), value("b", TensorProto.DOUBLE, [batch])
    text, again = (value(name, TensorProto.STRING, [batch, "any"]) for name in ("text", "again"))
    nodes = [
        helper.make_node("Cast", ["b"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["a", "axes"], ["s"], keepdims=0),
        helper.make_node("Add", ["s", "c"], ["sum"]),
        helper.make_node("Identity", ["text"], ["again"]),
    ]
    axes = numpy_helper.from_array(np.array([1], "int64"), "axes")
    return model(
        helper.make_graph(nodes, "pair", [a, b, text], [value("sum", TensorProto.FLOAT, [batch]), again], [axes])
    )


INPUTS = (Tensor("a", "float32", (2,)), Tensor("b", "float64"), Tensor("text", "string", (-1,)))
OUTPUTS = (Tensor("sum", "float32"), Tensor("again", "string", (-1,)))


@pytest.fixture
def deploy(client):
    def deploy(model, *example, **terms):
        return topsail.deploy_onnx("pair", model, *example, client=client, progress=False, **terms)

    return deploy


@pytest.mark.parametrize("batch", ["n", 1])
def test_inputs_and_outputs_by_their_names(deploy, management, batch):
    """With an example or without one; also of a model for one query at a time."""
    example = {"a": [1, 2], "b": 3, "text": ["x", "y"]}
    deployed = deploy(pair(batch), example)
    [data] = management.artifacts.values()
    manifest = bundle.read(data).manifest
    assert (manifest.signature, manifest.example) == (Signature(INPUTS, OUTPUTS), example)
    assert deployed.predict(example).outputs == {"sum": 6.0, "again": ["x", "y"]}
    without = deploy(pair(batch))
    assert without.version == "2"
    assert without.predict(example).outputs == {"sum": 6.0, "again": ["x", "y"]}


def test_one_of_the_named_outputs(deploy, management):
    deployed = deploy(pair(), output="again")
    assert management.apps["pair"]["signature"]["outputs"] == [OUTPUTS[1].document()]
    assert deployed.predict({"a": [1, 2], "b": 3, "text": ["x"]}).outputs == {"again": ["x"]}
    with pytest.raises(DeployFailed, match="the model has no output 'z': it has sum, again"):
        deploy(pair(), output="z")


def test_queries_of_several_shapes_in_a_batch(tmp_path):
    served = loaded(tmp_path, pair(), signature=Signature(INPUTS))
    batch = [{"a": [1, 2], "b": 3, "text": ["x"] * n} for n in (1, 2, 1)]
    answers = testing.run(served, batch)
    assert [a.error for a in answers if a.error] == []


def test_names_that_do_not_agree(deploy, tmp_path):
    with pytest.raises(
        PermanentFailure, match=r"the model has 3 inputs \(a, b, text\): give a dict with them as the ex"
    ):
        loaded(tmp_path, pair())
    with pytest.raises(PermanentFailure, match="the signature has the inputs a, and the model takes a, b, text"):
        loaded(tmp_path, pair(), signature=Signature(INPUTS[:1]))
    with pytest.raises(PermanentFailure, match="the model has no output 'z': it has sum, again"):
        loaded(tmp_path, pair(), signature=Signature(INPUTS, (Tensor("z", "float32"),)))
    with pytest.raises(
        DeployFailed, match=r"must be a dict with 'a', 'b', 'text': the model takes a float32\[2\], b fl"
    ):
        deploy(pair(), {"a": [1, 2]})


def test_a_model_compiled_for_one_size_of_batch(deploy):
    for batch in (None, {"strategy": "fixed", "max_size": 4, "pad": True}):
        assert deploy(linear(4), [1.0, 2.0, 3.0], batch=batch).predict([1.0, 2.0, 3.0]).default is False


def test_zeros_that_the_model_cannot_take(deploy, management):
    """Without an example; a dimension of any length is then one of 1."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "any"]) for name in "xy")
    three = numpy_helper.from_array(np.ones((3, 3), "float32"), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    with pytest.raises(DeployFailed, match="There is no example, so that zeros were tried: give one as example="):
        deploy(model(helper.make_graph([node], "wide", [x], [y], [three])))


def test_the_package_makes_models_that_are_valid():
    onnx.checker.check_model(linear())
    onnx.checker.check_model(image())


def classifier(labels, zipped=True, transform="SOFTMAX"):
    """As converters of scikit-learn make them: the label, and the probabilities by label, or as a tensor."""
    weights = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]).ravel().tolist()
    texts = isinstance(labels[0], str)
    named = {"classlabels_strings" if texts else "classlabels_ints": labels}
    kind = TensorProto.STRING if texts else TensorProto.INT64
    ml = {"domain": "ai.onnx.ml"}
    given = {"coefficients": weights, "intercepts": [0.0] * 3, "multi_class": 1, "post_transform": transform}
    outputs = ["label", "p" if zipped else "probabilities"]
    nodes = [helper.make_node("LinearClassifier", ["x"], outputs, **given, **named, **ml)]
    if zipped:
        by = {"classlabels_strings" if texts else "classlabels_int64s": labels}
        nodes.append(helper.make_node("ZipMap", ["p"], ["output_probability"], **by, **ml))
        mapped = helper.make_map_type_proto(kind, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        second = helper.make_value_info("output_probability", helper.make_sequence_type_proto(mapped))
    else:
        second = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 3])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "classifier", [x], [helper.make_tensor_value_info("label", kind, ["n"]), second])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


ROWS = np.log(np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], "float32"))


@pytest.mark.parametrize("named", [False, True], ids=["vectors", "by name"])
@pytest.mark.parametrize(
    ("labels", "zipped", "keys"),
    [
        (["a", "b", "c"], True, ["a", "b", "c"]),
        ([7, 8, 9], True, ["7", "8", "9"]),
        ([0, 1, 2], False, ["0", "1", "2"]),
        (["a", "b", "c"], False, None),
        ([7, 8, 9], False, None),
    ],
    ids=["texts", "numbers", "a tensor", "a tensor that names no texts", "a tensor that names no numbers"],
)
def test_a_classifier_with_probabilities(tmp_path, labels, zipped, keys, named):
    signature = Signature((Tensor("x", "float32", (3,)),), (Tensor("label", "json"),)) if named else None
    given = [{"x": row} if named else row.tolist() for row in ROWS]
    answers = testing.run(loaded(tmp_path, classifier(labels, zipped), signature, scores="true"), given)
    assert [a.output for a in answers] == [labels[0], labels[2]]
    if keys:
        assert [list(a.qualifiers["scores"]) for a in answers] == [keys] * 2
        assert np.allclose([list(a.qualifiers["scores"].values()) for a in answers], np.exp(ROWS), rtol=1e-5)
    else:
        assert [a.qualifiers for a in answers] == [{}] * 2
    assert [a.confidence for a in answers] == pytest.approx([0.5, 0.8])
    default = testing.run(loaded(tmp_path / "default", classifier(labels, zipped), signature), given)
    assert [(a.output, a.confidence, a.qualifiers) for a in default] == [(a.output, a.confidence, {}) for a in answers]
    without = loaded(tmp_path / "without", classifier(labels, zipped), signature, scores="false")
    plain = testing.run(without, given)
    assert [(a.output, a.confidence) for a in plain] == [(a.output, None) for a in answers]


def test_scores_that_are_no_probabilities(tmp_path):
    """As of a LinearSVC."""
    answers = testing.run(
        loaded(tmp_path, classifier(["a", "b", "c"], transform="NONE"), scores="true"), [[1.0, 5.0, 2.0]]
    )
    assert (answers[0].output, answers[0].confidence, answers[0].qualifiers) == ("b", None, {})


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="for machines without a GPU")
def test_a_model_for_a_gpu_from_a_machine_without_one(tmp_path, client, management):
    """It is tried on the CPU, asks for a GPU, and does not go on without one where it is served."""
    topsail.deploy_onnx("linear", linear(), [1.0, 0.0, 0.0], device="cuda", client=client, progress=False)
    [stored] = management.artifacts.values()
    made = bundle.read(stored)
    assert management.versions["linear"]["1"]["resources"] == {"gpu": {"count": 1}}
    assert any(r.startswith("onnxruntime-gpu[cuda,cudnn]") for r in made.manifest.requirements)
    made.unpack(tmp_path / "linear")
    with pytest.raises(
        PermanentFailure, match=r"the option device is cuda, and onnxruntime [\d.]+ (is a build for|cannot use)"
    ):
        load(Folder(tmp_path / "linear"))


def test_auto_goes_on_with_the_cpu(tmp_path):
    assert outputs(loaded(tmp_path, linear(), device="auto"), [[1, 1, 1]]) == [[6.0, 60.0]]


def identity(dtype, shape):
    x, y = (helper.make_tensor_value_info(name, dtype, shape) for name in "xy")
    return model(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", [x], [y], []))


def test_inputs_of_a_shape_that_the_model_leaves_open(deploy):
    """Which is that of the example."""
    picture = np.arange(60, dtype="float32").reshape(3, 4, 5)
    deployed = deploy(identity(TensorProto.FLOAT, ["n", 3, "h", "w"]), picture)
    assert deployed.predict(picture).output == picture.tolist()


@pytest.mark.parametrize(
    ("dtype", "good", "bad", "kind"),
    [
        (TensorProto.UINT8, [1, 2], [1, 256], "uint8, and 256"),
        (TensorProto.UINT8, [1, 2], [1, -1], "uint8, and -1"),
        (TensorProto.INT64, [1.0, 2.0], [1.0, 1.7], "int64, and 1.7"),
        (TensorProto.INT64, [1.0, 2.0], [1.0, 1e300], r"int64, and 1e\+300"),
        (TensorProto.FLOAT, [1.0, 2.0], [1.0, 1e300], r"float32, and 1e\+300"),
        (TensorProto.BOOL, [1, 0], [1, 2], "bool, and 2"),
    ],
)
def test_numbers_that_the_type_does_not_have(tmp_path, dtype, good, bad, kind):
    served = loaded(tmp_path, identity(dtype, ["n", 2]))
    found = testing.run(served, [good, bad], "integers" if isinstance(good[0], int) else "doubles")
    assert found[0].output == good
    assert found[1].error == f"the model takes numbers of type {kind} is none".replace("\\", "")
