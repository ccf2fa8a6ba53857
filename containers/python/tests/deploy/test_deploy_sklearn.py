"""scikit-learn and numpy: real estimators, deployed and served."""

import struct
import subprocess
import sys

import numpy as np
import pytest
from bundles import pickled, unpacked
from sidecar import Container, environment
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import topsail
from topsail import bundle, testing
from topsail.deploy import example
from topsail.deploy.failure import DeployFailed
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(n_estimators=10, random_state=1).fit(X, Y)


@pytest.fixture
def deploy(client):
    def deploy(model, given=X[0], **terms):
        return topsail.deploy_sklearn("iris", model, given, client=client, progress=False, **terms)

    return deploy


def loaded(folder):
    return load(Folder(folder))


def test_three_lines(management, forest, tmp_path):
    """From an empty folder, in a process that knows no more than where Topsail is."""
    (tmp_path / "forest.py").write_text(
        "from sklearn.datasets import load_iris; from sklearn.svm import SVC; import topsail\n"
        "X, y = load_iris(return_X_y=True)\n"
        "d = topsail.deploy_sklearn('iris', SVC().fit(X, y), example=X[0]); print(d.predict(X[60]).output)\n"
    )
    env = environment() | {"TOPSAIL_URL": management.url, "TOPSAIL_ADMIN_URL": management.url}
    run = subprocess.run([sys.executable, "forest.py"], cwd=tmp_path, env=env, capture_output=True, timeout=60)
    assert run.stdout == b"1\n" and run.returncode == 0, run.stderr.decode()
    assert run.stderr.decode().splitlines()[-1] == f"iris: {management.url}/iris/predict answers 0"


def test_an_estimator(deploy, forest, management):
    deployed = deploy(forest)
    assert [deployed.predict(x).output for x in X[::50]] == forest.predict(X[::50]).tolist()
    [data] = management.artifacts.values()
    manifest = bundle.read(data).manifest
    assert (manifest.runtime, manifest.entry, manifest.input_type, manifest.input_length) == (
        "sklearn",
        "model.pkl",
        "doubles",
        4,
    )
    assert [r.partition("==")[0] for r in manifest.requirements] == ["numpy", "scikit-learn", "scipy"]
    assert manifest.example == X[0].tolist()
    assert deploy(forest).version == deployed.version


def test_methods(deploy, forest):
    deployed = deploy(forest, method="predict_proba")
    assert deployed.predict(X[0]).output == pytest.approx(forest.predict_proba(X[:1])[0].tolist())
    with pytest.raises(DeployFailed, match="the model is a RandomForestClassifier, which has no decision_function"):
        deploy(forest, method="decision_function")


def test_labels_that_are_words(deploy):
    model = make_pipeline(StandardScaler(), SVC()).fit(X, NAMES[Y])
    assert deploy(model).predict(X[149]).output == "virginica"


def test_code_of_ones_own_in_a_pipeline(deploy, management):
    """Which pickle alone cannot take along."""
    model = make_pipeline(FunctionTransformer(lambda x: x * 2), LinearRegression()).fit(X, Y)
    assert deploy(model).predict(X[0]).output == pytest.approx(float(model.predict(X[:1])[0]))
    [data] = management.artifacts.values()
    assert "cloudpickle" in [r.partition("==")[0] for r in bundle.read(data).manifest.requirements]


def test_a_model_that_was_not_fitted(deploy, management):
    with pytest.raises(DeployFailed, match="the model fails on the example: NotFittedError"):
        deploy(SVC())
    assert management.did() == []


def test_an_example_of_another_length(deploy, forest, management):
    with pytest.raises(DeployFailed, match="the model fails on the example: ValueError: X has 3 features, but"):
        deploy(forest, X[0][:3])
    with pytest.raises(DeployFailed, match=r"2 dimensions, 1x4: an example is one input, as X\[0\]"):
        deploy(forest, X[:1])
    assert management.did() == []


def test_served_by_a_process(tmp_path, forest):
    program = Container(tmp_path, "-m", "topsail.runtime", str(pickled(tmp_path, forest)))
    with program as container, container.accept() as peer:
        peer.ready()
        peer.ask(*X[::50].tolist())
        assert [struct.unpack("<q", e.values[0].data) for e in peer.answer()] == [(0,), (1,), (2,)]
        container.terminate()
        assert container.ends() == 0


def test_what_is_no_estimator(tmp_path, forest):
    with pytest.raises(PermanentFailure, match="the model is a dict, which has no predict"):
        loaded(pickled(tmp_path, {}))
    with pytest.raises(
        PermanentFailure, match="option method = 'fit' is unknown: use predict, predict_proba, decision_function"
    ):
        loaded(pickled(tmp_path, forest, options={"method": "fit"}))
    with pytest.raises(PermanentFailure, match="runs a file .pkl"):
        loaded(unpacked(tmp_path, "sklearn", "m.bin", {"m.bin": b""}))


def test_without_scikit_learn(tmp_path, forest, monkeypatch):
    folder = pickled(tmp_path, forest)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(PermanentFailure, match="sklearn"):
        loaded(folder)


def test_inputs_of_several_lengths(tmp_path, forest):
    answers = testing.run(loaded(pickled(tmp_path, forest)), [X[0], X[0][:3]], "doubles")
    assert (answers[0].output, answers[0].error) == (0, None)
    assert "X has 3 features" in answers[1].error


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (np.array([1.5, 2]), "doubles"),
        (np.array([1.5], "float32"), "floats"),
        (np.array([1.5], "float16"), "floats"),
        (np.array([1, 2]), "integers"),
        (np.array([1, 2], "uint8"), "integers"),
        (np.array([True]), "integers"),
        ([np.float64(1.5), 2], "doubles"),
    ],
)
def test_types_of_arrays(given, kind):
    found = example.read(given)
    assert (found.input_type, found.value) == (kind, [x.item() if hasattr(x, "item") else x for x in given])


def test_arrays_that_are_no_example():
    for given, says in [
        (np.float64(1.5), "the example is the single value 1.5"),
        (np.array(["a"]), "has a str among its numbers"),
        (np.array([None]), "has a NoneType among its numbers"),
    ]:
        with pytest.raises(DeployFailed, match=says):
            example.read(given)
    assert example.read(np.zeros((2, 3)), shaped=True).shape == (2, 3)


def test_scores(deploy, forest, management):
    """A forest answers with its confidence, unless that is not wanted; others do if it is."""
    answer = deploy(forest).predict(X[0])
    assert (answer.output, answer.confidence, answer.qualifiers) == (0, 1.0, {"scores": {"0": 1, "1": 0, "2": 0}})
    without = deploy(forest, scores=False)
    assert (without.version, without.predict(X[0]).confidence) == ("2", None)
    model = LogisticRegression(max_iter=500).fit(X, NAMES[Y])
    assert deploy(model).predict(X[0]).confidence is None
    assert deploy(model, scores=True).predict(X[0]).confidence > 0.9
