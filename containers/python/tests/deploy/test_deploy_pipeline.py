"""Pipelines, deployed as versions with stages, and run by their workers."""

import importlib.util
import json
import struct
import sys
import threading

import pytest
from coordinator import Coordinator
from sidecar import PATIENCE, Container

import topsail
from topsail import bundle
from topsail.bundle import MANIFEST
from topsail.deploy.failure import DeployFailed

WITH_NUMPY = importlib.util.find_spec("numpy") is not None and sys.modules.get("numpy", True) is not None


def made():
    """A class and a function that travel by their code."""

    class Scale:
        def setup(self):
            self.factor = 2.0

        def predict(self, inputs):
            return [float(x[0]) * self.factor for x in inputs]

    def shift(numbers):
        return [x + 3 for x in numbers]

    return Scale, shift


Scale, shift = made()


@pytest.fixture
def deploy(client):
    def deploy(steps, example=(1.0,), **terms):
        return topsail.deploy_pipeline("sum", steps, list(example), client=client, progress=False, **terms)

    return deploy


def test_a_list_of_steps(deploy, management, tmp_path):
    """It is one version with stages, and its bundle runs them: in one process where it is tried, and in workers."""
    deployed = deploy([Scale, ("add", shift)])
    assert deployed.predict([4.0]).output == 11.0
    stages = management.versions["sum"]["1"]["stages"]
    aimd = {"strategy": "aimd"}
    assert stages == [
        {"name": "Scale", "after": ["input"], "code": "topsail_stages:Scale", "workers": 1, "batch": aimd},
        {"name": "add", "after": ["Scale"], "code": "topsail_stages:add", "workers": 1, "batch": aimd},
    ]
    [data] = management.artifacts.values()
    manifest = bundle.read(data).manifest
    assert (manifest.runtime, manifest.input_type, manifest.input_length) == ("python", "doubles", 1)
    bundle.read(data).unpack(tmp_path / "bundle")
    assert (tmp_path / "bundle" / MANIFEST).is_file()
    path = str(tmp_path / "bundle")
    with (
        Container(tmp_path, "-m", "topsail.runtime", path, TOPSAIL_STAGES=json.dumps(stages)) as container,
        Coordinator(container.listener) as coordinator,
    ):
        coordinator.ready(2)
        entry = coordinator.ask([4.0]).result(PATIENCE)
        assert struct.unpack("<d", entry.values[0].data) == (11.0,)


def test_a_pipeline_of_ones_own(deploy, management):
    """Its stages say their workers and batches, branch and join."""
    p = topsail.Pipeline()
    p.add(Scale, workers=2, cpus=[0, 1], idempotent=True)
    p.add(shift, name="a", batch=4, batch_delay=0.002, batch_pad=True)
    p.add(shift, name="b", after=Scale)
    p.add(lambda pairs: [x["a"] + x["b"] for x in pairs], name="both", after=["a", "b"], batch="quantile", max_batch=9)
    assert deploy(p).predict([1.0]).output == 10.0
    first, a, b, both = management.versions["sum"]["1"]["stages"]
    assert (first["workers"], first["cpus"], first["idempotent"]) == (2, [0, 1], True)
    assert a["batch"] == {"strategy": "fixed", "max_size": 4, "delay_micros": 2000, "pad": True}
    assert (b["after"], "batch" in b) == (["Scale"], False)
    assert (both["after"], both["batch"]) == (["a", "b"], {"strategy": "quantile", "max_size": 9})


def test_the_same_again_is_the_same_version(deploy):
    assert deploy([Scale, shift]).version == deploy([Scale, shift]).version == "1"
    p = topsail.Pipeline()
    p.add(Scale, workers=2, batch="aimd")
    p.add(shift, batch="aimd")
    assert deploy(p).version == "2"


def test_stages_by_their_names(deploy, management, tmp_path, monkeypatch):
    """Code that is imported here travels as its source."""
    (tmp_path / "steps_of_a_test.py").write_text("def double(inputs): return [2 * float(x[0]) for x in inputs]")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert deploy(["steps_of_a_test:double", shift]).predict([2.0]).output == 7.0
    first, _ = management.versions["sum"]["1"]["stages"]
    assert (first["name"], first["code"]) == ("double", "steps_of_a_test:double")


def test_a_stage_that_ends_a_query(deploy, management):
    def positive(inputs):
        return [x if x[0] >= 0 else topsail.Drop("negative") for x in inputs]

    def fails(inputs):
        raise KeyError("colour")

    deploy([positive, Scale])
    with pytest.raises(DeployFailed, match="fails on the example: .*stage fails: KeyError: 'colour'"):
        deploy([Scale, fails])


@pytest.mark.skipif(not WITH_NUMPY, reason="scikit-learn needs numpy")
def test_estimators(deploy, management):
    """Those that transform and those that predict, of which the last one says how sure it is."""
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import StandardScaler

    x, y = load_iris(return_X_y=True)
    scaler = StandardScaler().fit(x)
    forest = RandomForestClassifier(5, random_state=1).fit(scaler.transform(x), y)
    answer = deploy([scaler, forest], x[70]).predict(x[70])
    assert answer.output == forest.predict(scaler.transform(x[70:71]))[0]
    assert answer.confidence == forest.predict_proba(scaler.transform(x[70:71])).max()
    stages = management.versions["sum"]["1"]["stages"]
    assert [s["name"] for s in stages] == ["StandardScaler", "RandomForestClassifier"]
    [data] = management.artifacts.values()
    assert "scikit-learn" in {r.partition("==")[0] for r in bundle.read(data).manifest.requirements}


def test_what_is_no_pipeline(deploy, management):
    lock = threading.Lock()
    for steps, terms, says in [
        ([], {}, "the pipeline has no stages"),
        ([7], {}, "7 is no model: give a function"),
        ([shift, shift], {}, "there is another one of this name"),
        ([shift], {"batch": {"max_size": 3}}, "batch is for models without stages"),
        ([shift], {"hosted_by": "small"}, "hosted_by is for models without stages"),
        ([lambda x: x], {}, "stage '<lambda>': use a name"),
        ([("a", lambda x: (x, lock))], {}, "stage 'a': it cannot be packed"),
    ]:
        with pytest.raises(DeployFailed, match=says):
            deploy(steps, **terms)
    with pytest.raises(DeployFailed, match="the input of a pipeline is a vector, a text or bytes"):
        topsail.deploy_pipeline("sum", [shift], {"x": 1.0})
    assert management.did() == []
