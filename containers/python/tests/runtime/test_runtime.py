"""Bundles that run: real processes that talk to a sidecar, and loading alone for what differs by runtime."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bundles import PYTHON, source, unpacked
from sidecar import HERE, PATIENCE, Container, environment

from topsail import testing
from topsail.bundle import MANIFEST
from topsail.container.signature import Signature, Tensor
from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.r import RError

OTHER = "3.9" if PYTHON != "3.9" else "3.8"


@pytest.fixture
def serve(tmp_path):
    """Starts the runtime on a bundle; it is gone when the test is over."""
    started = []

    def serve(folder, **environ):
        started.append(Container(tmp_path, "-m", "topsail.runtime", str(folder), **environ))
        return started[-1]

    yield serve
    for container in started:
        container.__exit__()


def ends(folder):
    """The status and the words of a runtime that must not serve. It has no sidecar to talk to."""
    command = [sys.executable, "-m", "topsail.runtime", str(folder)]
    settings = {"TOPSAIL_SIDECAR": "127.0.0.1:1", "TOPSAIL_MODEL": "m", "TOPSAIL_VERSION": "1"}
    run = subprocess.run(command, env=environment() | settings, capture_output=True, timeout=PATIENCE)
    return run.returncode, run.stderr.decode()


def tried(folder):
    """The same of a trial, which goes the same way without a sidecar."""
    command = [sys.executable, "-m", "topsail.runtime.trial", str(folder), str(folder / "answer")]
    run = subprocess.run(command, env=environment(), capture_output=True, timeout=PATIENCE)
    return run.returncode, run.stderr.decode()


def loaded(folder):
    return load(Folder(folder))


def outputs(model, inputs, kind="doubles"):
    return [a.output if a.error is None else a.error for a in testing.run(model, inputs, kind)]


def test_source_is_served(tmp_path, serve):
    """From its own folder, with its own modules and files; the manifest says what the sidecar does not."""
    text = """
import helpers
print("a model may print what it likes")
def predict(inputs):
    with open("offset") as file:
        offset = float(file.read())
    return [helpers.total(x) + offset for x in inputs]
"""
    files = {"model.py": text.encode(), "offset": b"10", "helpers.py": b"def total(x): return float(sum(x))"}
    folder = unpacked(tmp_path, "python", "model:predict", files, input_type="doubles", input_length=2)
    container = serve(folder, TOPSAIL_INPUT_TYPE="")
    with container.accept() as peer:
        peer.greet()
        ready = peer.wait_ready()
        assert (ready.input_type, ready.input_length) == (4, 2)
        assert peer.predict([1, 2], [3, 4]) == [13.0, 17.0]
        [(_, message)] = peer.predict([1, 2, 3])
        assert "takes inputs of length 2" in message
    container.terminate()
    assert container.ends() == 0


def test_a_class_keeps_its_hooks(tmp_path, serve):
    text = """
class Sum:
    def setup(self): self.offset = 1.0
    def decode(self, x): return list(x)
    def predict(self, inputs): return [sum(x) + self.offset for x in inputs]
    def teardown(self): print("torn down", flush=True); open("gone", "w")
"""
    container = serve(source(tmp_path, text, "model:Sum", example=[1.0]))
    with container.accept() as peer:
        peer.ready()
        assert peer.predict([1, 2]) == [4.0]
        container.terminate()
        assert container.ends() == 0
    assert (tmp_path / "bundle" / "gone").exists()


def test_a_class_loads_what_the_bundle_has(tmp_path, monkeypatch):
    """A kind of one's own: the class is told where the model is."""
    text = """
class Sum:
    def load(self, path): self.offset = float(open(path).read())
    def predict(self, inputs): return [sum(x) + self.offset for x in inputs]

class Nothing(Sum):
    load = None
"""
    files = {"kinds.py": text.encode(), "model": b"2.5"}

    def model(entry, name):
        folder = unpacked(tmp_path, "python", entry, files, options={"model": name})
        monkeypatch.syspath_prepend(str(folder))
        return loaded(folder)

    assert outputs(model("kinds:Sum", "model"), [[1, 2]]) == [5.5]
    for entry, name, says in [
        ("kinds:Sum", "other", "the option model = 'other' is no file or folder of the bundle"),
        ("kinds:Sum", "../../etc", "is no file or folder of the bundle"),
        ("kinds:Nothing", "model", "the option model is for a class with a method load, which Nothing has not"),
    ]:
        with pytest.raises(PermanentFailure, match=says):
            model(entry, name)


def test_the_manifests_example_warms_the_model_up(tmp_path, serve):
    text = """
seen = []
def predict(inputs):
    seen.extend(list(map(float, x)) for x in inputs)
    return [str(seen)] * len(inputs)
"""
    container = serve(source(tmp_path, text, example=[1.5, 2.0]))
    with container.accept() as peer:
        peer.ready()
        peer.ask([3.0])
        [entry] = peer.answer()
        assert json.loads(str(entry.values[0].data, "utf-8")) == [[1.5, 2.0], [3.0]]


def test_another_python_is_refused_before_anything_is_unpickled(tmp_path):
    """The pickle would leave a file if it were read. No sidecar is needed to be told no."""
    trap = f"cposix\nsystem\n(Vtouch {tmp_path}/unpickled\ntR.".encode()
    status, said = ends(unpacked(tmp_path, "python", "f.pkl", {"f.pkl": trap}, python=OTHER))
    assert status == 78
    assert f"the bundle was made with Python {OTHER}, and this is Python {PYTHON}" in said
    assert "Traceback" not in said
    assert not (tmp_path / "unpickled").exists()
    (tmp_path / "bundle" / MANIFEST).write_text((tmp_path / "bundle" / MANIFEST).read_text().replace(OTHER, PYTHON))
    ends(tmp_path / "bundle")
    assert (tmp_path / "unpickled").exists()  # so the trap works


def test_the_sidecar_is_told_why(tmp_path, serve):
    text = """
import os, time
while not os.path.exists(os.environ["TEST_FOLDER"] + "/connected"):
    time.sleep(0.001)
import no_such_module
"""
    container = serve(source(tmp_path, text))
    with container.accept() as peer:
        peer.greet()
        container.touch("connected")  # for which a container that cannot be loaded does not wait for long
        while True:
            if (frame := peer.next()) is None or frame.kind == 11 or b"no_such_module" in bytes(frame.body):
                break
        assert frame is not None
        assert b"add no_such_module with its version to the requirements" in bytes(frame.body)
    assert container.ends() == 78


REFUSED = {
    "missing module": (
        {"model.py": b"import sklearn_of_another_kind"},
        {},
        "needs the module 'sklearn_of_another_kind', which its environment does not have",
    ),
    "distribution by its own name": (
        {"model.py": b"raise ModuleNotFoundError(name='cv2.x')"},
        {},
        "add opencv-python with",
    ),
    "no such name": ({"model.py": b"def other(x): ..."}, {}, "cannot be found: model has no 'predict'; it has other"),
    "no such module": ({"other.py": b""}, {}, "cannot be found: there is no module 'model'"),
    "no function": (
        {"model.py": b"predict = 7"},
        {},
        "is of type int: it must be a function, or have a predict method",
    ),
    "broken pickle": ({"f.pkl": b"junk"}, {"entry": "f.pkl"}, "f.pkl cannot be read back: UnpicklingError"),
    "another file": ({"f.txt": b"junk"}, {"entry": "f.txt"}, "runs a file .pkl, and the entry is 'f.txt'"),
    "not base64": ({"model.py": b"def predict(x): return x"}, {"input_type": "bytes", "example": "§"}, "is no base64"),
    "host": ({}, {"runtime": "host", "entry": ""}, "holds models of other bundles"),
    "pmml": ({"m.pmml": b""}, {"runtime": "pmml", "entry": "m.pmml", "python": ""}, "runs in Java"),
    "a command": ({}, {"runtime": "command", "entry": "", "command": ("a",)}, "is a program of its own"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(tmp_path, case):
    files, said, says = REFUSED[case]
    folder = unpacked(tmp_path, **({"runtime": "python", "entry": "model:predict", "files": files} | said))
    status, words = tried(folder)
    assert (status, says in words, words.count("\n")) == (78, True, 1), words


def test_folders_that_are_no_bundle(tmp_path):
    assert "is no unpacked bundle: manifest.json: No such file" in ends(tmp_path)[1]
    (tmp_path / MANIFEST).write_text("{}")
    assert (
        ends(tmp_path)
        == tried(tmp_path)
        == (78, "topsail: the bundle has format None, and this version of topsail reads 1\n")
    )
    folder = unpacked(tmp_path, "python", "model.pkl", {"model.pkl": b""})
    (folder / "model.pkl").unlink()
    assert "the entry 'model.pkl' of the manifest is not in the bundle, which has nothing" in tried(folder)[1]


def test_usage():
    run = subprocess.run(
        [sys.executable, "-m", "topsail.runtime"], env=environment(), capture_output=True, timeout=PATIENCE
    )
    assert (run.returncode, b"usage: python -m topsail.runtime FOLDER" in run.stderr) == (64, True)


def test_the_models_own_trouble_comes_with_its_traceback(tmp_path):
    status, said = tried(source(tmp_path, "raise KeyError('colour')"))
    assert (status, "Traceback" in said, "topsail: the model failed: KeyError: 'colour'" in said) == (1, True, True)


def test_an_example_that_fails(tmp_path):
    status, said = ends(source(tmp_path, "def predict(x): raise KeyError('colour')", example=[1.0]))
    assert (status, "topsail: warm-up failed for example 0 of 1: KeyError: 'colour'" in said) == (1, True)


def test_bytes_are_base64_in_a_manifest(tmp_path):
    folder = source(tmp_path, "def predict(x): return [len(b) for b in x]", input_type="bytes", example="AAEC")
    assert tried(folder) == (0, "")
    assert json.loads((folder / "answer").read_text())["output"] == "3"


NAMED = Signature((Tensor("raw", "bytes", (-1,)), Tensor("x", "float64")), (Tensor("y", "float64"),))


def test_inputs_with_names_are_tried(tmp_path):
    """On the manifest's example, or without one on zeros and empty texts."""
    text = "def predict(xs): return [{'y': x['x'] + len(b''.join(x['raw']))} for x in xs]"
    folder = source(tmp_path, text, signature=NAMED, example={"raw": ["AAEC", ""], "x": 1.5})
    assert tried(folder) == (0, "")
    assert json.loads((folder / "answer").read_text())["output"] == "{'y': 4.5}"
    folder = source(tmp_path / "zeros", text.replace("x['x']", "1 / x['x']"), signature=NAMED)
    assert tried(folder)[0] == 0
    assert "There is no example, so that zeros were tried" in json.loads((folder / "answer").read_text())["error"]


def test_the_signature_of_the_version_counts_before_the_bundles(tmp_path):
    folder = Folder(source(tmp_path, "def predict(xs): return xs"))
    assert folder.named is None
    folder.take_signature("")
    assert folder.named is None
    folder.take_signature(json.dumps(NAMED.document()))
    assert folder.named == NAMED
    with pytest.raises(PermanentFailure, match="the signature '{' cannot be read"):
        folder.take_signature("{")


# R, by a program that speaks as R with loop.R does.


@pytest.fixture
def rscript(monkeypatch):
    monkeypatch.setenv(
        "PATH", f"{HERE / 'fakes' / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin"
    )


def r(tmp_path, words="", **options):
    return unpacked(tmp_path, "r", "model.R", {"model.R": words.encode()}, options=options)


def test_r(tmp_path, rscript):
    model = loaded(r(tmp_path))
    assert outputs(model, [[1.0, 2.0], [3.0]]) == [3.0, 3.0]
    assert outputs(model, ["text"], "strings") == ["TEXT"]  # and R was started again after the first test's teardown
    model.teardown()


def test_r_that_ends_is_started_again(tmp_path, rscript):
    model = loaded(r(tmp_path, seconds="90"))
    program = model.predict.__self__
    assert program._seconds == 90.0
    for bad, seconds, says in (
        (-1.0, 90.0, "R ended with status 9; its last words are in the log"),
        (-2.0, 0.1, "R did not answer within 0.1 s"),
        (-3.0, 90.0, "R answered with what is not JSON"),
        (-4.0, 90.0, "subscript out of bounds"),
    ):
        program._seconds = seconds
        with pytest.raises(RError) as e:
            model.predict([_doubles(bad)])
        assert str(e.value) == says
        program._seconds = 90.0
        assert model.predict([_doubles(1, 2)]) == [3.0]
    model.teardown()


def test_more_than_a_pipe_holds(tmp_path, rscript):
    model = loaded(r(tmp_path))
    many = [_doubles(*[1.25] * 1000)] * 200
    assert model.predict(many) == [1250.0] * 200
    model.teardown()


@pytest.mark.parametrize(
    ("words", "options", "says"),
    [
        ("no-jsonlite", {}, "R has no package jsonlite"),
        ("no-predict", {}, "R could not load model.R: it defines no function predict"),
        ("", {"seconds": "0"}, "seconds = '0' is no time for a batch"),
    ],
)
def test_r_that_cannot_be_served(tmp_path, rscript, words, options, says):
    with pytest.raises(PermanentFailure) as e:
        loaded(r(tmp_path, words, **options))
    assert says in str(e.value)


def test_no_r_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermanentFailure, match="Rscript is not on the PATH: install R where this model runs"):
        loaded(r(tmp_path))


# Spark, by a package that has as much of it as the runtime uses.


@pytest.fixture
def spark(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(HERE / "fakes"))
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        del sys.modules[name]


def test_a_pipeline_of_spark(tmp_path, spark):
    folder = unpacked(tmp_path, "pyspark", "model", {"model/metadata/part-0": b"10"})
    model = loaded(folder)
    assert outputs(model, [[1.0, 2.0], [3.0]]) == [30.0, 30.0]
    assert outputs(model, [[float(i)] for i in range(20)]) == [10.0 * i for i in range(20)]
    assert (tmp_path / "spark-stopped").exists()


def test_a_function_of_spark(tmp_path, spark, monkeypatch):
    text = b"def predict(spark, inputs): return [spark.said['master'] for _ in inputs]"
    folder = unpacked(
        tmp_path, "pyspark", "spark_model:predict", {"spark_model.py": text}, options={"master": "local[2]"}
    )
    monkeypatch.syspath_prepend(str(folder))
    assert outputs(loaded(folder), [[1.0]]) == ["local[2]"]


WEIGHING = b"def predict(spark, model, inputs): return [sum(x) * model.factor for x in inputs]"


def with_model(tmp_path, monkeypatch, **options):
    files = {"spark_weighing.py": WEIGHING, "saved/metadata/part-0": b"4"}
    folder = unpacked(tmp_path, "pyspark", "spark_weighing:predict", files, options={"model": "saved"} | options)
    monkeypatch.syspath_prepend(str(folder))
    return loaded(folder)


def test_a_function_of_spark_with_a_saved_model(tmp_path, spark, monkeypatch):
    model = with_model(tmp_path, monkeypatch, **{"class": "pyspark.ml.PipelineModel"})
    assert outputs(model, [[1.0, 2.0], [3.0]]) == [12.0, 12.0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"class": "os.system"}, "the model's class is 'os.system', which is not one of pyspark"),
        ({"class": "pyspark.ml.Nothing"}, "Spark cannot load the model in 'saved' as pyspark.ml.Nothing"),
        ({"class": "pyspark.ml.PipelineModel", "model": "nowhere"}, "cannot load the model in 'nowhere'"),
    ],
)
def test_a_saved_model_of_spark_that_cannot_be_loaded(tmp_path, spark, monkeypatch, options, says):
    with pytest.raises(PermanentFailure, match=says):
        with_model(tmp_path, monkeypatch, **options)


def test_no_spark(tmp_path, spark):
    folder = unpacked(tmp_path, "pyspark", "model", {"model/x": b""}, options={"master": "nowhere"})
    with pytest.raises(PermanentFailure, match="Spark does not start: Java gateway process exited. It needs Java"):
        loaded(folder)


def test_no_pyspark(tmp_path):
    with pytest.raises(PermanentFailure, match="needs the module 'pyspark'.*add pyspark with its version"):
        loaded(unpacked(tmp_path, "pyspark", "model", {"model/x": b""}))


def _doubles(*values):
    from topsail.container.input_type import DOUBLES

    return DOUBLES.reader()([DOUBLES.value(list(values))])


def test_the_loop_of_r_is_in_the_package():
    loop = Path(sys.modules["topsail.runtime.r"].__file__).with_name("loop.R")
    assert loop.read_text().startswith("# Runs the predict")


def test_a_vector_of_a_signature_is_a_row(tmp_path):
    """As MLServer's clients send it, under its name. The estimator is in a file of joblib, which no pickle is."""
    import joblib
    from sklearn.linear_model import LinearRegression

    rows = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    joblib.dump(LinearRegression().fit(rows, [1.0, 2.0, 3.0]), tmp_path / "model.joblib")
    files = {"model.joblib": (tmp_path / "model.joblib").read_bytes()}
    signature = Signature((Tensor("predict", "float32", (2,)),), (Tensor("predict", "float64"),))
    model = loaded(unpacked(tmp_path, "sklearn", "model.joblib", files, signature=signature))
    found = testing.run(model, [{"predict": [1, 1]}, {"predict": [0, 2]}])
    assert [a.output for a in found] == pytest.approx([4.0, 5.0])
