"""Deploying functions: what travels, what is refused here, and what the service is asked for."""

import io
import subprocess
import threading
from array import array
from functools import partial

import clerk
import pytest
from sidecar import HERE, PATIENCE

import topsail
from topsail import bundle
from topsail.bundle import PYTHON, Manifest
from topsail.deploy import example, progress, rollout
from topsail.deploy.failure import DeployFailed
from topsail.optional import numpy

UNIT = 2.0


def double(inputs):
    return [sum(x) * UNIT for x in inputs]


@pytest.fixture
def deploy(client):
    """Deploys a function by the client of the test, in silence."""

    def deploy(name, func, progress=False, **terms):
        return topsail.deploy_python_function(name, func, client=client, progress=progress, **terms)

    return deploy


@pytest.fixture
def quick(monkeypatch):
    """For tests of what comes after the trial, which takes a process."""
    monkeypatch.setattr(rollout.trial, "run", lambda *_: {"seconds": 0.0, "output": "1"})


@pytest.fixture
def simulated(clock, client, monkeypatch):
    """A clock for a roll-out, which its waits alone move on. What it asks at the end of its time may take longer than
    the second that it gives it."""
    monkeypatch.setattr(rollout, "time", clock)
    for of, name in ((client, "predict"), (client.replicas, "list")):
        monkeypatch.setattr(of, name, partial(_untimed, getattr(of, name)))
    return clock


def _untimed(call, *arguments, timeout=None, **options):
    return call(*arguments, **options)


def only_bundle(management):
    [data] = management.artifacts.values()
    return bundle.read(data)


def packed(management):
    return sorted(only_bundle(management).files)


def test_a_function_of_a_module_that_is_only_here(deploy, management):
    """Its source travels, and that of what it imports."""
    deployed = deploy("clerk", clerk.total, example=[1.5, 2.0])
    assert deployed.predict([1, 2, 3]).output == 60.0
    assert packed(management) == ["clerk.py", "clerk_tools.py", "function.pkl"]
    manifest = only_bundle(management).manifest
    assert (manifest.runtime, manifest.entry, manifest.python) == ("python", "function.pkl", PYTHON)
    assert (manifest.input_type, manifest.input_length, manifest.example) == ("doubles", 0, [1.5, 2.0])
    assert [r.partition("==")[0] for r in manifest.requirements] == ["numpy"] * (numpy is not None)


def test_a_function_of_a_notebook(deploy, management):
    """Code and what it uses travel, by cloudpickle; also what it imports only when it runs."""
    rate = 3.0

    def total(inputs):
        import cloudpickle  # any package that is installed

        return [float(sum(x)) * rate * bool(cloudpickle) + clerk.RATE for x in inputs]

    assert deploy("total", total, example=[1.5]).predict([2]).output == 16.0
    assert packed(management) == ["clerk.py", "clerk_tools.py", "function.pkl"]
    assert "cloudpickle" in [r.partition("==")[0] for r in only_bundle(management).manifest.requirements]


def test_a_function_by_its_name(deploy, management):
    assert deploy("clerk", "clerk:Clerk", example=[1.5]).predict([1, 2]).output == 30.0
    assert packed(management) == ["clerk.py", "clerk_tools.py"]
    assert only_bundle(management).manifest.entry == "clerk:Clerk"


@pytest.mark.parametrize(
    ("given", "kind", "asked", "answer"),
    [
        ("a text", "strings", "other", "OTHER"),
        (b"\x00\xff", "bytes", b"\x01\x02\x03", 3),
        ([1, 2], "integers", [4, 5], 2),
    ],
)
def test_other_inputs(deploy, management, given, kind, asked, answer):
    deployed = deploy("kinds", lambda xs: [x.upper() if isinstance(x, str) else len(x) for x in xs], example=given)
    assert deployed.predict(asked).output == answer
    assert management.versions["kinds"]["1"]["input_type"] == management.apps["kinds"]["input_type"] == kind


def test_functions_that_fail_are_not_deployed(deploy, management):
    """They are tried as a container would run them: on a list, and on more than one input."""
    for func, says in {
        (lambda xs: xs[0]["colour"]): "the model fails on the example: .*Error",
        (lambda xs: 7): "predict returned a int, not a list of 1 outputs",
        (lambda xs: [1.0]): "predict returned 1 outputs for 3 inputs",
        (lambda xs: [object()] * len(xs)): "the model fails on the example",
        (lambda xs: __import__("os")._exit(9)): "ended the process with status 9",
    }.items():
        with pytest.raises(DeployFailed, match=says):
            deploy("bad", func, example=[1.0])
    assert management.did() == []


def test_what_keeps_a_class_from_loading(deploy):
    class Broken:
        def setup(self):
            raise OSError("no such file: weights")

        def predict(self, inputs):
            return inputs

    with pytest.raises(DeployFailed, match="the model failed: OSError: no such file: weights"):
        deploy("broken", Broken, example=[1.0])


def test_a_model_that_hangs(deploy):
    with pytest.raises(DeployFailed, match="took more than .* s to load and answer its example"):
        deploy("slow", lambda xs: threading.Event().wait(), example=[1.0], timeout=1.0)


def test_what_cannot_be_packed(deploy):
    lock, file = threading.Lock(), io.TextIOWrapper(io.BytesIO())
    for func in (lambda xs: [bool(lock)] * len(xs), lambda xs: [file.name] * len(xs)):
        with pytest.raises(DeployFailed, match="it cannot be packed: .*Error: .*make them where they are used"):
            deploy("bad", func, example=[1.0])
    with pytest.raises(DeployFailed, match="a int cannot be deployed"):
        deploy("bad", 7, example=[1.0])
    for name, says in {
        "clerk:Nobody": "names nothing",
        "clerk": "names nothing",
        "nobody:f": "cannot be imported",
    }.items():
        with pytest.raises(DeployFailed, match=says):
            deploy("bad", name, example=[1.0])


def test_without_cloudpickle(deploy, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    with pytest.raises(DeployFailed, match="needs cloudpickle: pip install cloudpickle"):
        deploy("f", lambda xs: xs, example=[1.0])


def test_requirements_that_are_given_count(deploy, management, quick):
    deploy("f", lambda xs: xs, example="text", requirements=["Cloud_Pickle==9.9", "cloudpickle==3.0.0", "other>=1,<2"])
    assert only_bundle(management).manifest.requirements == ("Cloud_Pickle==9.9", "cloudpickle==3.0.0", "other>=1,<2")
    with pytest.raises(DeployFailed, match="is no requirement that a bundle may have"):
        deploy("f", lambda xs: xs, example="text", requirements=["-r other.txt"])


def test_terms_that_nobody_knows(deploy):
    with pytest.raises(TypeError, match="deployers do not take 'replicsa': they take version, replace"):
        deploy("f", double, example=[1.0], replicsa=2)


# Versions and apps.


def test_what_is_asked_of_the_service(deploy, management, quick):
    deploy("sum", double, example=[1.5], replicas=2, slo=0.02, default=-1, labels=["a"], batch={"max_size": 8})
    digest = only_bundle(management).digest
    assert management.did() == [
        "POST /api/v1/artifacts",
        "POST /api/v1/models/sum/versions",
        "POST /api/v1/apps",
        "POST /sum/predict",
    ]
    version, app = (
        h.json for h in management.heard if h.path in ("/api/v1/models/sum/versions", "/api/v1/apps") and h.body
    )
    assert version == {"version": "1", "bundle": digest, "replicas": 2, "batch": {"max_size": 8}, "labels": ["a"]}
    assert app == {
        "name": "sum",
        "input_type": "doubles",
        "latency_slo_micros": 20_000,
        "default_output": "-1",
        "models": ["sum"],
        "example": "[1.5]",
    }


def test_an_app_without_an_example_gets_the_one_of_the_bundle(deploy, management, quick):
    management.apps["sum"] = {"name": "sum", "input_type": "doubles", "latency_slo_micros": 100_000}
    deploy("sum", double, example=[1.5])
    assert management.apps["sum"]["example"] == "[1.5]"
    deploy("sum", double, example=[2.5])
    assert management.apps["sum"]["example"] == "[1.5]"
    assert management.did("PATCH") == ["PATCH /api/v1/apps/sum"]


def test_a_long_example_stays_in_the_bundle(deploy, management, quick):
    deploy("sum", double, example=[0.125] * 4000)
    assert "example" not in management.apps["sum"]
    deploy("sum", double, example=[0.25] * 4000)
    assert management.did("PATCH") == []


def test_the_same_again_changes_nothing(deploy, management, quick):
    assert deploy("sum", double, example=[1.5]).version == "1"
    management.heard.clear()
    assert deploy("sum", double, example=[1.5]).version == "1"
    assert management.did() == ["POST /sum/predict"]


def test_other_resources_are_the_next_version(deploy, management, quick):
    def version(**terms):
        return deploy("sum", double, example=[1.5], **terms).version

    artifact = {"source": "https://models.example/w.bin", "checksum": "sha256:" + "0" * 64}
    assert version(gpus=1, env={"A": "1"}) == "1"
    assert version() == "1"  # where nothing is said of them
    assert version(gpus=0) == "2"
    assert version(gpus=0, resources={"cpu": 0}) == "2"
    assert version(gpus=1, env={"A": "1"}) == "1"
    assert version(env={"A": "1", "B": "2"}) == "3"
    assert version(artifacts=[artifact]) == "4"
    assert version(artifacts=[artifact]) == "4"
    with pytest.raises(DeployFailed, match="sum:1 is there with other content"):
        version(version="1", gpus=2)


def test_something_else_is_the_next_version(deploy, management, quick):
    assert deploy("sum", double, example=[1.5]).version == "1"
    second = deploy("sum", clerk.total, example=[1.5])
    assert (second.version, management.current["sum"]) == ("2", "2")
    assert second.predict([1, 2]).output == 30.0
    first = deploy("sum", double, example=[1.5])  # back to what was there before
    assert (first.version, management.current["sum"]) == ("1", "1")
    assert sorted(management.versions["sum"]) == ["1", "2"]


def test_a_deployment_asks_its_version(deploy, management, quick):
    first = deploy("sum", double, example=[1.5])
    second = deploy("sum", clerk.total, example=[1.5])
    assert (first.predict([1, 2]).output, second.predict([1, 2]).output) == (6.0, 30.0)
    assert first.predict([1, 2], version="2").output == 30.0


def test_versions_by_name(deploy, management, quick):
    assert deploy("sum", double, example=[1.5], version="v1").version == "v1"
    assert deploy("sum", double, example=[1.5], version="v1").version == "v1"
    assert deploy("sum", double, example=[1.5], version=7).version == "7"
    assert deploy("sum", clerk.total, example=[1.5]).version == "8"
    with pytest.raises(
        DeployFailed, match="sum:v1 is there with other content, and versions do not change: leave version="
    ):
        deploy("sum", clerk.total, example=[1.5], version="v1")
    before = management.versions["sum"]["v1"]["bundle"]
    assert deploy("sum", clerk.total, example=[1.5], version="v1", replace=True).version == "v1"
    assert management.versions["sum"]["v1"]["bundle"] != before
    with pytest.raises(DeployFailed, match="give version="):
        deploy("sum", clerk.total, example=[1.5], replace=True)


def test_the_commit(deploy, management, quick, tmp_path, monkeypatch):
    def commit(**terms):
        deploy("sum", double, example=[1.5], version="1", **terms)
        return management.versions.pop("sum")["1"]["deployed"].get("commit", "")

    monkeypatch.setattr("topsail.deploy.commit._WITHIN", PATIENCE)
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert commit() == ""
    git = partial(subprocess.run, check=True, capture_output=True, text=True)
    git(["git", "init", "-q"])
    (tmp_path / "model.py").write_text("1")
    git(["git", "add", "."])
    git(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"])
    head = git(["git", "rev-parse", "HEAD"]).stdout.strip()
    assert commit() == head
    (tmp_path / "model.py").write_text("2")
    assert commit() == f"{head}-dirty"
    assert commit(commit="c1") == "c1"
    assert commit(commit="") == ""
    monkeypatch.setenv("PATH", str(tmp_path))  # without git
    assert commit() == ""


def test_somebody_else_takes_the_next_version(deploy, management, client, quick, monkeypatch):
    create = management.createVersion
    others = iter(["1", "2"])

    def slower(model, body=None, **query):
        if other := next(others, None):
            create(model, body={"version": other, "input_type": "doubles"})
        return create(model, body=body, **query)

    management.createVersion = slower
    assert deploy("sum", double, example=[1.5]).version == "3"


def test_the_number_of_replicas_of_what_is_there(deploy, management, quick):
    deploy("sum", double, example=[1.5])
    deploy("sum", double, example=[1.5], replicas=3)
    assert management.versions["sum"]["1"]["replicas"] == 3
    deploy("other", double, example=[1.5], scale={"min": 1, "max": 4})
    assert management.versions["other"]["1"]["scale"] == {"min": 1, "max": 4}


def test_apps(deploy, management, client, quick):
    client.apps.create("shop", slo=1.0)
    deployed = deploy("sum", double, example=[1.5], app="shop")
    assert management.apps["shop"]["models"] == ["sum"]
    assert management.apps["shop"]["latency_slo_micros"] == 1_000_000
    assert deployed.predict([1, 2]).output == 6.0
    alone = deploy("alone", double, example=[1.5], app=False)
    assert "alone" not in management.apps
    with pytest.raises(DeployFailed, match="alone was deployed without an app: link it to one"):
        alone.predict([1])
    client.apps.create("words", input_type="strings")
    management.heard.clear()
    with pytest.raises(DeployFailed, match="the app 'words' takes strings, and the model doubles: deploy it with app="):
        deploy("more", double, example=[1.5], app="words")
    assert management.did() == []


def test_a_bundle_made_before(client, management):
    made = bundle.build(
        Manifest("python", "m:f", PYTHON, input_type="strings", example="a"),
        {"m.py": b"def f(xs): return [x * 2 for x in xs]"},
    )
    deployed = topsail.deploy_bundle("twice", made, client=client, progress=False)
    assert management.artifacts == {made.digest: made.data}
    assert (deployed.version, deployed.predict("b").output) == ("1", "bb")


# Hosts.


@pytest.fixture
def small(client, management):
    return topsail.deploy_host("small", ["pytest"], memory_mb=256, client=client, progress=False)


def test_a_host(small, management):
    """It has no app, and its bundle is an environment."""
    version = management.versions["small"]["1"]
    assert (version["host"], version["replicas"], small.app, management.apps) == ({"memory_mb": 256}, 1, None, {})
    manifest = only_bundle(management).manifest
    assert (manifest.runtime, manifest.entry, manifest.python) == ("host", "", PYTHON)
    names = [r.partition("==")[0] for r in manifest.requirements]
    assert names == ["numpy"] * (numpy is not None) + ["pytest"]


def test_a_host_with_another_budget_is_another_version(small, client):
    again = topsail.deploy_host("small", ["pytest"], memory_mb=256, client=client, progress=False)
    larger = topsail.deploy_host("small", ["pytest"], memory_mb=512, client=client, progress=False)
    assert (again.version, larger.version) == ("1", "2")


def test_a_model_that_is_hosted(small, deploy, management, quick):
    """It has no replicas to wait for, and is asked all the same."""
    said = []
    deployed = deploy("sum", double, example=[1.5], hosted_by="small", progress=said.append)
    version = management.versions["sum"]["1"]
    assert version["hosted_by"] == "small"
    body = next(h.json for h in management.heard if h.path.endswith("/sum/versions") and h.method == "POST")
    assert not {"replicas", "scale", "resources", "env"} & body.keys()
    assert said[-1].endswith("/sum/predict answers 3.0") and "ready" not in "".join(said)
    assert deployed.predict([2]).output == 4.0
    alone = deploy("sum", double, example=[1.5])
    assert alone.version == "2"  # the same bundle, and another version


def test_a_hosted_model_is_tried_as_in_a_host(small, deploy, monkeypatch, tmp_path):
    """Where nothing of the bundle can be imported once it is loaded."""
    (tmp_path / "too_late.py").write_text("def predict(inputs):\n    import too_late_tools\n    return inputs")
    (tmp_path / "too_late_tools.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert deploy("late", "too_late:predict", example=[1.5]).version == "1"
    with pytest.raises(DeployFailed, match="No module named 'too_late_tools'"):
        deploy("late", "too_late:predict", example=[1.5], hosted_by="small")


def test_a_model_that_is_bound_to_the_thread_that_loads_it(small, deploy, monkeypatch, tmp_path):
    """A host loads on one thread and answers on another."""
    (tmp_path / "prices.py").write_text(
        "import sqlite3\n"
        "class Prices:\n"
        "    def setup(self): self.db = sqlite3.connect(':memory:')\n"
        "    def predict(self, inputs): return [self.db.execute('select 2').fetchone()[0] for _ in inputs]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert deploy("prices", "prices:Prices", example=[1.5]).version == "1"
    with pytest.raises(DeployFailed, match="same thread.*It answers on the thread that loaded it.*without hosted_by"):
        deploy("prices", "prices:Prices", example=[1.5], hosted_by="small")


def test_a_model_that_its_host_cannot_load(small, deploy, management, quick, simulated):
    management.unable = "the host cannot load the model: KeyError: 'colour'"
    with pytest.raises(DeployFailed, match="sum:1 is registered, and answers with the default: the host cannot load"):
        deploy("sum", double, example=[1.5], hosted_by="small")


def test_what_cannot_be_hosted(small, deploy, management, client, quick):
    management.heard.clear()
    with pytest.raises(DeployFailed, match="there is no model 'large' to hold it: make one with topsail.deploy_host"):
        deploy("sum", double, example=[1.5], hosted_by="large")
    with pytest.raises(DeployFailed, match="replicas is the host's where a model is hosted_by another: leave it out"):
        deploy("sum", double, example=[1.5], hosted_by="small", replicas=2)
    with pytest.raises(DeployFailed, match="the runtime 'command' needs a process for each model"):
        made = bundle.build(Manifest("command", command=("a",)), {})
        topsail.deploy_bundle("a", made, client=client, progress=False, hosted_by="small")
    assert management.did() == []
    with pytest.raises(DeployFailed, match="no-such-thing"):
        topsail.deploy_host("other", ["no-such-thing"], client=client, progress=False)


# Waiting.


def test_progress_is_said_line_by_line(deploy, management, capsys):
    management.reasons.extend(["installing numpy", "installing numpy", "installing scikit-learn"])
    deploy("sum", double, example=[1.5], progress=True)
    said = capsys.readouterr().err.splitlines()
    assert all(line.startswith("sum: ") for line in said)
    assert said[0] == "sum: trying the model here"
    assert "and its example gives 3.0" in said[1]
    assert said[-5:-2] == [
        "sum: app sum is registered: it answers within 100 ms",
        "sum: 0 of 1 ready: starting, installing numpy",
        "sum: 0 of 1 ready: starting, installing scikit-learn",
    ]
    assert said[-2].startswith("sum: version 1 is ready after ")
    assert said[-1].endswith("/sum/predict answers 3.0")


def test_progress_for_a_function(deploy, quick):
    said = []
    deploy("sum", double, example=[1.5], progress=said.append)
    assert said[-1].endswith("/sum/predict answers 3.0")


def test_progress_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(progress.sys, "stderr", Terminal())
    shown = progress.Progress("sum", True)
    shown.now("installing\nnumpy")
    shown.now("installing\nnumpy")
    shown.done("ready")
    assert progress.sys.stderr.getvalue() == "\r\033[Ksum: installing numpy\r\033[Ksum: ready\n"


def test_a_version_that_fails(deploy, management, quick, monkeypatch):
    monkeypatch.setattr(rollout, "_PATIENCE", 0.5)
    management.failing = "it ended with status 78: the model needs the module 'x'"
    with pytest.raises(DeployFailed) as e:
        deploy("sum", double, example=[1.5])
    assert str(e.value) == (
        "sum:1 did not become ready: it ended with status 78: the model needs the module 'x'\nloading\nréady\n"
        "sum:1 stays registered; to remove it: except topsail.DeployFailed as e: e.deployment.delete()"
    )
    management.failing = ""
    assert deploy("sum", double, example=[1.5]).version == "1"  # which is the way out when it was chance


def test_what_a_version_that_fails_leaves(deploy, management, quick, monkeypatch):
    monkeypatch.setattr(rollout, "_PATIENCE", 0.5)
    deploy("sum", double, example=[1.5])
    management.failing = "out of memory"
    with pytest.raises(DeployFailed, match=r"sum:2 stays registered.*rollback\(\); e.deployment.delete\(\)$") as e:
        deploy("sum", lambda inputs: [0.0 for _ in inputs], example=[1.5])
    assert e.value.deployment.rollback().version == "1"
    e.value.deployment.delete()
    assert [v.version for v in e.value.deployment.client.versions.list("sum")] == ["1"]


@pytest.mark.parametrize("terms", [{"name": "Sum"}, {"name": ""}, {"app": "a/b"}, {"version": "1:2"}])
def test_names_that_cannot_be(deploy, management, terms):
    with pytest.raises(DeployFailed, match="cannot be .*: use 1 to 63"):
        deploy(terms.pop("name", "sum"), double, example=[1.5], **terms)
    assert not management.artifacts


def test_the_service_has_the_same_names():
    names = (HERE.parents[2] / "serving" / "name.go").read_text()
    for rule in (rollout._MODEL, rollout._APP, rollout._VERSION):
        assert f"`^{rule.pattern}$`" in names


def test_a_module_that_reads_a_file_beside_it(deploy, management, tmp_path, monkeypatch):
    (tmp_path / "words_of.py").write_text(
        "from pathlib import Path\n"
        "words = (Path(__file__).parent / 'words.txt').read_text()\n"
        "def count(inputs): return [len(words) for _ in inputs]\n"
    )
    (tmp_path / "words.txt").write_text("abc")
    monkeypatch.syspath_prepend(tmp_path)
    import words_of

    with pytest.raises(DeployFailed, match="words.txt.*Files beside a module are not in its bundle"):
        deploy("count", words_of.count, example=[1.5])


def test_a_version_that_fails_again_and_again(deploy, management, quick, monkeypatch):
    monkeypatch.setattr(rollout, "_PATIENCE", 0.5)
    looks = iter([{"state": "failed", "reason": "it finds no GPU"}])
    plain, next_start = management._replicas, {"state": "starting", "reason": "connected"}
    monkeypatch.setattr(
        management, "_replicas", lambda: [r | next(looks, next_start) | {"restarts": 4} for r in plain()]
    )
    with pytest.raises(DeployFailed, match="sum:1 did not become ready: it finds no GPU"):
        deploy("sum", double, example=[1.5])


def test_a_version_that_takes_too_long(deploy, management, quick, simulated):
    management.reasons.extend(["installing numpy"] * 1000)
    with pytest.raises(DeployFailed, match="sum:1 did not become ready: installing numpy"):
        deploy("sum", double, example=[1.5], timeout=60)
    assert simulated.now == 160


# The handle.


@pytest.fixture
def two(deploy, quick):
    return deploy("sum", double, example=[1.5]), deploy("sum", clerk.total, example=[1.5])


def test_a_handle(two, management):
    first, second = two
    assert repr(second) == "<Deployment sum:2, app 'sum'>"
    assert f"<tr><th>app</th><td>{management.url}/sum/predict</td></tr>" in second._repr_html_()
    assert "<td>1 of 1 ready</td>" in second._repr_html_()
    assert second.logs() == "loading\nréady"
    second.scale(2)
    assert second.logs().splitlines()[0] == "== sum-2-0, ready"
    log = second.follow()
    assert next(log) == "loading"
    log.close()
    assert second.rollback().version == "1"
    assert management.current["sum"] == "1"
    assert first.rollback("2").version == "2"


def test_deleting(two, management, client):
    first, second = two
    with pytest.raises(topsail.Conflict, match="sum:2 is the current version: roll back, and delete it then"):
        second.delete()
    first.delete()
    assert list(management.versions["sum"]) == ["2"]
    client.apps.create("shop", models=["sum", "other"])
    second.delete()
    assert (management.versions, management.apps.keys()) == ({}, {"shop"})
    assert management.apps["shop"]["models"] == ["other"]


def test_hostile_names_do_not_become_html(client):
    shown = topsail.Deployment(client, "<script>", "<b>", "<i>")
    html = shown._repr_html_()
    assert "<script>" not in html and "<b>" not in html and "<i>" not in html


# Examples.


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ("text", "strings", "text"),
        (b"\x00\x01", "bytes", "AAE="),
        ([1, 2], "integers", [1, 2]),
        ([1, 2.5], "doubles", [1, 2.5]),
        ((1.0, 2.0), "doubles", [1.0, 2.0]),
        ([True, False], "integers", [True, False]),
        (array("f", [1.5]), "floats", [1.5]),
        (array("d", [1.5]), "doubles", [1.5]),
        (array("i", [1]), "integers", [1]),
        (range(3), "integers", [0, 1, 2]),
    ],
)
def test_types_of_examples(given, kind, value):
    found = example.read(given)
    assert (found.input_type, found.value) == (kind, value)


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        (None, None, r"Give an example=, or input_type="),
        (5.0, None, "the example is a float: give one input, as a list or array"),
        ([], None, "the example is empty"),
        ([[1.0, 2.0]], None, r"has 2 dimensions, 1x2: an example is one input, as X\[0\]"),
        ([1, "a"], None, "has a str among its numbers: 'a'"),
        ([float("nan")], None, "has NaN or infinity"),
        ([1 << 40], None, "does not fit into 32 bits: use input_type='doubles'"),
        ([1.5], "ints", "1.5 in the example does not fit"),
        ("text", "doubles", "the example is one of strings, and input_type is 'doubles': make them agree"),
        ([1.0], "words", "input type 'words' is unknown"),
        ({"a": 1}, None, "the example is a dict"),
    ],
)
def test_examples_that_are_none(given, kind, says):
    with pytest.raises(DeployFailed, match=says):
        example.read(given, kind)


def test_a_type_that_is_named_counts():
    assert example.read([1, 2], "floats") == example.Example([1, 2], "floats")
    assert example.read(None, "str") == example.Example(None, "strings")
    assert example.read([[1, 2], [3, 4]], shaped=True) == example.Example([1, 2, 3, 4], "integers", (2, 2))
