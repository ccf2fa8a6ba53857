"""What is looked at before anything is changed, and whether a bundle answers as its model does here."""

import os
import random
from dataclasses import replace

import pytest

import topsail
from topsail.deploy import named, rollout
from topsail.deploy.failure import DeployFailed
from topsail.optional import numpy


def double(inputs):
    return [sum(map(float, x)) * 2 for x in inputs]


@pytest.fixture
def deploy(client):
    def deploy(func=double, name="f", progress=False, **terms):
        return topsail.deploy_python_function(
            name, func, client=client, progress=progress, **{"example": [1.5]} | terms
        )

    return deploy


@pytest.fixture
def quick(monkeypatch):
    """For tests of what comes after the trial, which takes a process."""
    monkeypatch.setattr(rollout.trial, "run", lambda *_: {"seconds": 0.0, "output": "1"})


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"slo": 0}, "slo=0 cannot be an objective: give seconds, from 0.0001 to 600"),
        ({"slo": 100_000}, "slo=100000 cannot be an objective"),
        ({"slo": "50ms"}, "slo='50ms' cannot be an objective"),
        ({"name": "metrics"}, "'metrics' is reserved"),
        ({"default": {1, 2}}, r"default=\{1, 2\} cannot be an answer"),
        ({"default": float("nan")}, "default=nan cannot be an answer"),
        ({"requirements": "numpy==2.2.6"}, r"requirements is one text: give a list, \['numpy==2.2.6'\]"),
        ({"labels": "a"}, "labels is one text"),
        ({"example": b""}, "the example is empty"),
    ],
)
def test_nothing_is_left_of_what_cannot_be(deploy, management, terms, says):
    with pytest.raises(DeployFailed, match=says):
        deploy(**terms)
    assert management.did() == []


def test_what_the_service_refuses_is_a_failed_deployment(deploy, client, quick, monkeypatch):
    def refuse(*_, **__):
        raise topsail.BadRequest("env A must be a text", 400)

    monkeypatch.setattr(client.versions, "create", refuse)
    with pytest.raises(DeployFailed, match="env A must be a text") as e:
        deploy(env={"A": 1})
    assert e.value.status == 400 and isinstance(e.value.__cause__, topsail.BadRequest)


@pytest.mark.skipif(numpy is None, reason="a default of numpy")
def test_a_default_of_numpy(deploy, management, quick):
    deploy(default=numpy.int64(3))
    assert management.apps["f"]["default_output"] == "3"


def test_what_an_app_goes_on_doing_is_said(deploy, management, quick):
    said = []
    deploy(app="shared", slo=0.2, default="none")
    deploy(name="g", app="shared", progress=said.append)
    assert (
        "g: app shared has it, and goes on asking f, which is what its policy says: client.apps.set_policy changes that"
        in said
    )
    said.clear()
    deploy(name="g", app="shared", slo=0.3, default=-1, progress=said.append)
    assert "g: app shared keeps its slo of 0.2 s and its default none: to change it, use client.apps.update" in said


def test_a_policy_that_asks_it(deploy, client, quick):
    said = []
    deploy(app="shared")
    client.apps.set_policy("shared", {"kind": "exp4"})
    deploy(name="g", app="shared", progress=said.append)
    assert "g: app shared has it" in said


@pytest.mark.parametrize(
    "end", ["__import__('sys').exit(0)", "__import__('sys').exit('bye')", "__import__('os')._exit(0)"]
)
def test_a_model_that_ends_its_process(deploy, management, end):
    with pytest.raises(DeployFailed, match="the model ended the process"):
        deploy(eval(f"lambda inputs: {end}"))
    assert management.did() == []


class _WarmsUp:
    def __init__(self, fail):
        self.fail = fail

    def predict(self, inputs):
        return [sum(x) for x in inputs]

    def warmup(self):
        self.fail()
        return [[1.0]]


def _raise():
    raise ValueError("no tokenizer")


@pytest.mark.parametrize(
    ("fail", "why"),
    [
        (lambda: __import__("sys").exit(0), "the model ended the process"),
        (_raise, "the model failed: ValueError: no tokenizer"),
    ],
)
def test_a_model_that_fails_when_it_warms_up(deploy, management, fail, why):
    with pytest.raises(DeployFailed, match=why):
        deploy(_WarmsUp(fail))
    assert management.did() == []


def test_truths_are_numbers(deploy, management):
    """As columns of pandas.get_dummies are."""
    assert deploy(example=[True, False, 2.5]).predict([True, True]).output == 4.0
    assert management.versions["f"]["1"]["input_type"] == "doubles"


def test_inputs_of_another_type(deploy, quick):
    with pytest.raises(topsail.BadRequest, match="the model takes texts, and the input is bytes"):
        deploy(len, name="texts", example="a").predict(b"abc")
    with pytest.raises(topsail.BadRequest, match="the model takes bytes, and the input is a text"):
        deploy(len, name="blobs", example=b"a").predict("abc")


def test_named_inputs_of_another_type(deploy, quick):
    texts = deploy(lambda inputs: [len(inputs)], name="rows", example={"t": "abc", "b": b"x", "n": 1})
    with pytest.raises(topsail.BadRequest, match="t is a text, and the input is bytes"):
        texts.predict({"t": b"abc", "b": b"x", "n": 1})
    with pytest.raises(topsail.BadRequest, match="b is bytes, and the input is a text"):
        texts.predict({"t": "abc", "b": "x", "n": 1})
    inputs = [{"name": "n", "type": "int64"}, {"name": "x", "type": "float64"}]
    assert named.sent({"n": 3.0, "x": 3.0}, inputs) == {"n": 3, "x": 3.0}
    assert type(named.sent({"n": 3.0}, inputs)["n"]) is int
    assert named.sent({"n": 3.5}, inputs) == {"n": 3.5}  # which the gateway refuses


def test_answers_that_are_no_numbers(deploy, management):
    for answer in (float("nan"), [1.0, float("inf")], {"a": float("nan")}):
        with pytest.raises(DeployFailed, match="NaN|Out of range float"):
            deploy(lambda inputs, answer=answer: [answer for _ in inputs])
    assert management.versions == {}


def test_terms_of_another_kind(deploy, management):
    for terms, said in (
        ({"requirements": {"attrs": "23.1.0"}}, "no list of texts"),
        ({"requirements": [1]}, "no list of texts"),
        ({"batch": 32}, "no dict"),
        ({"timeout": "5"}, "give seconds"),
        ({"timeout": -1}, "give seconds"),
        ({"slo": True}, "give seconds"),
    ):
        with pytest.raises(DeployFailed, match=said):
            deploy(**terms)
    with pytest.raises(DeployFailed, match="no client"):
        topsail.deploy_python_function("f", len, example=[1.0], client="http://x")
    assert management.did() == []


# Beside the current version.


def test_a_canary(deploy, management, quick):
    said = []
    deploy()
    deployed = deploy(lambda inputs: [7] * len(inputs), canary=0.1, progress=said.append)
    assert (deployed.version, management.current["f"]) == ("2", "1")
    assert management.apps["f"]["policy"] == {"kind": "versions", "canary": "2", "share": 0.1}
    assert "f: app f gives 0.1 of its queries to version 2" in said
    assert said[-1].endswith("/f/predict answers 7")


def test_the_next_canary_keeps_how_it_is_judged(deploy, management, client, quick):
    deploy()
    client.apps.set_policy("f", {"kind": "versions", "weights": {"1": 1}, "sticky": True, "max_loss": 0.2})
    deploy(len, canary=0.2)
    assert management.apps["f"]["policy"] == {
        "kind": "versions",
        "canary": "2",
        "share": 0.2,
        "sticky": True,
        "max_loss": 0.2,
    }


def test_lengths_are_checked_before_anything_is_registered(deploy, management, client, quick):
    deploy()
    management.versions["f"]["1"]["input_length"] = 3
    made = topsail.bundle.read(management.artifacts[management.versions["f"]["1"]["bundle"]])
    other = replace(made, manifest=replace(made.manifest, input_length=5))
    for terms, way in (
        ({"canary": 0.1}, "without canary"),
        ({}, "with app= another name, or with replace_contract=True"),
    ):
        name = "f" if terms else "g"
        with pytest.raises(
            DeployFailed, match=f"takes inputs of length 3, as f:1 does, and this model takes 5: .* {way}"
        ):
            topsail.deploy_bundle(name, other, client=client, progress=False, app="f", **terms)
    assert (list(management.versions), list(management.versions["f"])) == (["f"], ["1"])


def test_categories_of_the_example_are_those_of_the_training():
    named.check_categories({"a": [1, 2]}, [])
    named.check_categories({"a": [1, 2], "b": ["x", "y"]}, [[1, 2], ["x", "y"]])
    for shown, trained, said in (
        (
            {"a": [30]},
            [],
            "the column 'a' of the example has the categories 30, and not those that the model was trained on:",
        ),
        ({"a": []}, [], "has the categories none"),
        (
            {"a": [1, 2], "b": ["x", "z"]},
            [[1, 2], ["x", "y", "z"]],
            "'b' of the example has the categories 'x', 'z'.* 'x', 'y', 'z':",
        ),
    ):
        with pytest.raises(DeployFailed, match=said):
            named.check_categories(shown, trained)


def test_a_canary_that_fails_leaves_the_policy_and_the_current_version(deploy, management, client, quick, monkeypatch):
    monkeypatch.setattr(rollout, "_PATIENCE", 0.5)
    deploy()
    client.apps.set_policy("f", {"kind": "single", "model": "f"})
    management.failing = "no licence"
    with pytest.raises(DeployFailed, match="the policy of app f is as it was before") as e:
        deploy(len, canary=0.3)
    assert "rollback" not in str(e.value)
    assert management.apps["f"]["policy"] == {"kind": "single", "model": "f"}
    with pytest.raises(topsail.Conflict, match="f:2 is not current, and 1 is: name a version"):
        e.value.deployment.rollback()
    e.value.deployment.delete()
    assert (list(management.versions["f"]), management.current["f"]) == (["1"], "1")


def test_a_function_that_fails_on_what_clients_send(deploy, management):
    """A function takes any length; the app's example shows what its clients send."""
    deploy(lambda inputs: [x[0] + x[1] for x in inputs], example=[1.0, 2.0])

    def third(inputs):
        return [x[2] for x in inputs]

    refusal = r"fails on \[1.0, 2.0\], the example of the app 'f'.*IndexError(.|\n)*replace_contract"
    for how in ({}, {"canary": 0.1}):
        with pytest.raises(DeployFailed, match=refusal):
            deploy(third, example=[1.0, 2.0, 3.0], **how)
    assert list(management.versions["f"]) == ["1"]
    assert deploy(third, example=[1.0, 2.0, 3.0], keep_current=True).version == "2"
    assert deploy(third, example=[1.0, 2.0, 3.0], replace_contract=True).version == "2"
    assert deploy(lambda inputs: [sum(x) for x in inputs], example=[1.0, 2.0, 3.0, 4.0]).version == "3"


def test_the_current_version_is_no_canary(deploy, management, quick):
    deploy()
    with pytest.raises(DeployFailed, match="f:1 has this bundle and is current: nothing to try"):
        deploy(canary=0.1)
    assert "policy" not in management.apps["f"]


def test_canaries_that_cannot_be(deploy, management, client, quick):
    with pytest.raises(DeployFailed, match="there is no app 'f' yet"):
        deploy(canary=0.1)
    for wrong in (0, 1, 10):
        with pytest.raises(DeployFailed, match=f"canary is {wrong}: give the share of the app's queries"):
            deploy(canary=wrong)
    with pytest.raises(DeployFailed, match="canary is 0.1: give the share of the app's"):
        deploy(canary=0.1, app=False)
    assert management.did() == []
    deploy()
    client.apps.set_policy("f", {"kind": "exp3"})
    with pytest.raises(DeployFailed, match="the app 'f' has the policy 'exp3', which chooses by itself"):
        deploy(len, canary=0.1)
    assert list(management.versions["f"]) == ["1"]


def test_a_version_for_later(deploy, management, quick):
    said = []
    deploy()
    assert deploy(len, keep_current=True, progress=said.append).version == "2"
    assert management.current["f"] == "1"
    assert said[-1] == "f: version 2 gets replicas when it is current, or a policy names it"


def test_an_old_bundle_that_becomes_current_again_says_so(deploy, management, quick):
    said = []
    deploy()
    deploy(len)
    deploy(keep_current=True, progress=said.append)
    assert management.current["f"] == "2" and "f: version 1 has this bundle already" in said
    deploy(progress=said.append)
    assert management.current["f"] == "1"
    assert (
        "f: version 1 has this bundle already, and is current again in place of 2: rollback() takes that back" in said
    )


# What the model answers here.


def of_this_process():
    """Answers that are others in another process: as those of a model whose conversions differ there."""
    here = os.getpid()
    return lambda inputs: [sum(x) + (os.getpid() == here) for x in inputs]


def test_a_bundle_that_answers_otherwise(deploy, management):
    with pytest.raises(DeployFailed, match=r"for \[1.5\] the model answers 2.5 here, and 1.5 from its bundle"):
        deploy(of_this_process())
    assert management.did() == []
    assert deploy(of_this_process(), check=False).version == "1"


def test_rows_to_check(deploy):
    """Of which there may be many."""
    here = os.getpid()
    rows = [[float(i)] for i in range(100)]
    assert deploy(check=rows).version == "1"
    with pytest.raises(DeployFailed, match=r"for \[60.0\] the model answers 61.0 here, and 60.0 from its bundle"):
        deploy(lambda inputs: [x[0] + (x[0] > 58 and os.getpid() == here) for x in inputs], check=rows)


def test_rows_that_fail(deploy):
    with pytest.raises(DeployFailed, match="the model fails here on rows of check: ZeroDivisionError"):
        deploy(lambda inputs: [1 if x[0] or not isinstance(x, list) else 1 / 0 for x in inputs], check=[[0.0]])
    with pytest.raises(DeployFailed, match=r"fails on \[2.0\], a row of check: .*ZeroDivisionError"):
        deploy(lambda inputs: [x[0] if isinstance(x, list) or x[0] < 2 else 1 / 0 for x in inputs], check=[[2.0]])
    with pytest.raises(DeployFailed, match="must be numbers|among its numbers"):
        deploy(check=[["a"]])


@pytest.mark.parametrize(
    "func",
    [
        lambda inputs: [random.random() for _ in inputs],
        lambda inputs: [x.sum() for x in inputs],  # which takes no lists
        lambda inputs: ["1"] * len(inputs),  # which clients get as a number
        lambda inputs: [{"a": (1, 2.0000001), "b": None}] * len(inputs),
    ],
)
def test_what_is_no_difference(deploy, func):
    if numpy is None and "sum" in func.__code__.co_names:
        pytest.skip("inputs are no arrays of numpy")
    assert deploy(func).version == "1"


def test_what_is_not_here_is_not_compared(deploy):
    with pytest.raises(DeployFailed, match="there is nothing here that check could be compared with: leave it out"):
        deploy("clerk:Clerk", check=[[1.0]])
