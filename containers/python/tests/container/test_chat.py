"""Functions that answer chats."""

import json

import pytest
from here import Here

import topsail
from topsail import testing
from topsail.container.chat import ChatModel
from topsail.container.execution import Execution
from topsail.container.input_type import CHAT
from topsail.protocol.constants import Status

REQUEST = {
    "messages": [{"role": "user", "content": "hi"}],
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "n": 1,
    "max_tokens": 3,
    "temperature": 0.5,
    "stop": None,
    "session": "mine",
}


def options(function, **changes):
    """The keywords with which the function is called."""
    got = {}

    class Model(ChatModel):
        def _predict(self, request):
            got.update(self._options.of(request))
            return "ok"

    [answer] = testing.run(Model(function), [REQUEST | changes])
    assert answer.output == "ok", answer
    return got


def declared(messages, max_tokens=9, *, temperature=1.0, stop=(), seed=0):
    return "ok"


def everything(messages, **options):
    return "ok"


def newer(messages, max_completion_tokens=None, max_tokens=None):
    return "ok"


def test_options_are_those_that_the_function_declares():
    assert options(declared) == {"max_tokens": 3, "temperature": 0.5}
    assert options(declared, max_tokens=None, max_completion_tokens=7) == {"max_tokens": 7, "temperature": 0.5}
    assert options(declared, max_completion_tokens=7)["max_tokens"] == 3
    assert options(lambda messages: "ok") == {}
    assert options(lambda temperature: "ok") == {}  # which is where the messages go
    assert options(newer, max_tokens=None, max_completion_tokens=7) == {"max_tokens": 7, "max_completion_tokens": 7}


def test_a_function_may_take_all_options():
    assert options(everything, top_k=4) == {"max_tokens": 3, "temperature": 0.5, "top_k": 4}
    assert options(everything, max_tokens=None, max_completion_tokens=7) == {"max_tokens": 7, "temperature": 0.5}


def streaming(messages, max_tokens=2):
    yield from [m["content"] for m in messages][:max_tokens]
    yield "!"


async def streaming_async(messages):
    for message in messages:
        yield message["content"]
    yield "!"


async def coroutine(messages):
    return messages[0]["content"] + "!"


def plain(messages):
    return messages[0]["content"] + "!"


class Chat:
    """With hooks."""

    def setup(self):
        self.ending = "!"

    def warmup(self):
        return [{"messages": [{"content": "warm"}]}]

    def predict(self, messages):
        yield messages[0]["content"]
        yield self.ending


@pytest.mark.parametrize(
    ("answer", "execution"),
    [
        (streaming, Execution.THREADS),
        (plain, Execution.THREADS),
        (Chat, Execution.THREADS),
        (streaming_async, Execution.EVENT_LOOP),
        (coroutine, Execution.EVENT_LOOP),
    ],
)
def test_answers_of_every_kind_of_function(answer, execution):
    assert ChatModel(answer).execution is execution
    with Here(ChatModel(answer), "chat") as here, here.accept() as peer:
        assert peer.ready_with.input_type == CHAT.code
        assert peer.ready_with.concurrency
        peer.query(REQUEST, kind=CHAT)
        got = peer.all()
        assert got == ["hi!"] if answer in (plain, coroutine) else ["hi", "!", "hi!"]


def chunk(content=None, **more):
    return {"choices": [{"index": 0, "delta": {"content": content}} | more]}


USAGE = {"prompt_tokens": 1, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([{"role": "assistant"}, {"content": "a"}, "b"], ("ab", "stop", None)),
        ([chunk("a"), chunk("b", finish_reason="length"), {"choices": [], "usage": USAGE}], ("ab", "length", USAGE)),
        (["a", chunk(finish_reason="tool_calls") | {"usage": None}], ("a", "tool_calls", None)),
    ],
)
def test_deltas_and_chunks_are_passed_on_as_json(parts, whole):
    def answer(messages):
        yield from parts

    with Here(ChatModel(answer), "chat") as here, here.accept() as peer:
        peer.query(REQUEST, kind=CHAT)
        *got, last = peer.all()
        assert [p if isinstance(p, str) else json.dumps(p, separators=(",", ":")) for p in parts] == got
        assert json.loads(last) == dict(zip(("content", "finish_reason", "usage"), whole, strict=True))


def test_calls_of_tools_are_joined():
    def call(i, **more):
        return {"tool_calls": [{"index": i} | more]}

    parts = [
        call(0, id="a", type="function", function={"name": "weather", "arguments": ""}),
        call(0, function={"arguments": '{"city":'}),
        call(1, id="b", function={"name": "time", "arguments": "{}"}),
        call(0, function={"arguments": '"Oslo"}'}),
        chunk(finish_reason="tool_calls"),
    ]
    assert ChatModel(streaming).join_parts(parts) == {
        "content": "",
        "finish_reason": "tool_calls",
        "usage": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
            {"id": "b", "type": "function", "function": {"name": "time", "arguments": "{}"}},
        ],
    }


def test_a_part_that_is_none():
    def answer(messages):
        yield 3

    [got] = testing.run(ChatModel(answer), [REQUEST])
    assert got.status == Status.MODEL_ERROR
    assert got.error == "TypeError: a int is no part of a chat: yield text, or a dict as OpenAI's deltas are"


def test_an_answer_in_its_session():
    def answer(messages, session, **options):
        yield f"{session.user!r} {sorted(options)}"

    [got] = testing.run(ChatModel(answer), [REQUEST])
    assert got.output == "'' ['max_tokens', 'temperature']"


def test_what_answers_no_chats():
    with pytest.raises(TypeError, match="5 answers no chats"):
        ChatModel(5)


def test_serve_chat_needs_a_sidecar(monkeypatch):
    monkeypatch.delenv("TOPSAIL_SIDECAR", raising=False)
    with pytest.raises(SystemExit, match="TOPSAIL_SIDECAR is not set"):
        topsail.serve_chat(plain)


def test_a_request_without_messages_is_none_for_chat():
    model = ChatModel(lambda messages: "ok")
    for request in ({"prompt": "hi"}, {"messages": "hi"}):
        with pytest.raises(ValueError, match="no list of messages"):
            model.predict(request)
