"""Deploying what answers chats."""

import pytest

import topsail
from topsail import bundle
from topsail.deploy.failure import DeployFailed


@pytest.fixture
def deploy(client):
    def deploy(answer, **terms):
        return topsail.deploy_chat("bot", answer, client=client, progress=False, **terms)

    return deploy


def only_manifest(management):
    [data] = management.artifacts.values()
    return bundle.read(data).manifest


def echo(messages, max_tokens=64, **options):
    for word in messages[-1]["content"].split()[:max_tokens]:
        yield word + " "


class Greeter:
    def setup(self):
        self.greeting = "Good day, "

    def predict(self, messages):
        return self.greeting + messages[-1]["content"]


@pytest.mark.parametrize("answer", [echo, Greeter, Greeter()], ids=["generator", "class", "object"])
def test_an_app_that_answers_chats(deploy, management, answer):
    deploy(answer)
    said = only_manifest(management)
    assert (said.runtime, said.entry, said.options) == ("python", "function.pkl", {"chat": "messages"})
    assert (said.input_type, said.input_length) == ("chat", 0)
    assert said.example == {"messages": [{"role": "user", "content": "Hello"}]}
    app = management.apps["bot"]
    assert (app["input_type"], app["latency_slo_micros"]) == ("chat", 5_000_000)


def test_messages_or_a_request_as_the_example(deploy, management):
    messages = [{"role": "user", "content": "one two three"}]
    deploy(echo, example=messages, slo=1.5)
    assert only_manifest(management).example == {"messages": messages}
    assert management.apps["bot"]["latency_slo_micros"] == 1_500_000
    request = {"messages": messages, "max_tokens": 2}
    management.artifacts.clear()
    deploy(echo, example=request, version="2")
    assert only_manifest(management).example == request


def test_it_is_tried(deploy, management):
    def broken(messages):
        raise RuntimeError("no weights")

    with pytest.raises(DeployFailed, match="the model fails on the example: RuntimeError: no weights"):
        deploy(broken)
    assert management.artifacts == {}


@pytest.mark.parametrize(
    ("answer", "terms", "says"),
    [
        (7, {}, "a int cannot be deployed: give a function"),
        (echo, {"example": {"prompt": "x"}}, "the example has no list of messages"),
        (echo, {"example": {"messages": "x"}}, "the example has no list of messages"),
    ],
)
def test_what_cannot_be_deployed(deploy, answer, terms, says):
    with pytest.raises(DeployFailed, match=says):
        deploy(answer, **terms)
