"""TensorFlow: real SavedModels, deployed and run on the CPU."""

import numpy as np
import pytest
import tensorflow as tf
from bundles import unpacked
from sidecar import Container

import topsail
from topsail import bundle, testing
from topsail.deploy.failure import DeployFailed
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.refusal import Refused

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
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "a"), tf.TensorSpec([None], tf.float32, "b")])
    def __call__(self, a, b):
        return a + b


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


def test_what_cannot_be_served(tmp_path, deploy):
    with pytest.raises(Refused, match=r"the signature has 2 inputs \(a, b\), and a query has one"):
        saved(tmp_path, Pair())
    with pytest.raises(Refused, match="has no signature 'serving_default': it has up"):
        saved(tmp_path, Words())
    with pytest.raises(Refused, match="cannot load m.pb as a SavedModel: SavedModel file does not exist"):
        load(Folder(unpacked(tmp_path, "tensorflow", "m.pb", {"m.pb": b"junk"})))
    with pytest.raises(Refused, match="cannot load junk as a SavedModel"):
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
    with pytest.raises(Refused, match=r"device is cuda, and TensorFlow \S+ (is a build for the CPU|finds no GPU here)"):
        load(Folder(tmp_path / "net"))
