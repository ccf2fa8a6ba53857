"""Answers in parts, against a real HTTP server that sends them one by one."""

import asyncio
import gc
import json
import threading
from random import Random

import pytest
from awaiting import grow_impatient
from gateway import ANSWER, CUT, HANG, Gateway, Live
from sidecar import PATIENCE

import topsail

UNAVAILABLE = 503, {"error": "Unavailable", "cause": "this gateway is stopping: send it again"}


@pytest.fixture
def gateway():
    gateway = Gateway()
    yield gateway
    gateway.stop()


@pytest.fixture
def live(gateway):
    """What the gateway answers with first."""
    live = Live()
    gateway.say(live)
    return live


@pytest.fixture
def client(gateway, connect):
    return connect(gateway.url, timeout=PATIENCE)


def use(gateway, how):
    async def main():
        async with topsail.AsyncClient(gateway.url, timeout=PATIENCE) as client:
            return await how(client)

    return asyncio.run(main())


def test_each_part_comes_before_the_next_is_made(gateway, live, client):
    parts = client.stream("chat", "hello")
    for word in ("a", " b", "1"):
        live.part(word)
        assert next(parts) == word
        assert parts.answer is None
    live.end({"query_id": 7, "output": "a b1", "default": False, "missing": ["m:1"]})
    assert list(parts) == []
    assert (parts.answer.output, parts.answer.query_id, parts.answer.missing) == ("a b1", 7, ["m:1"])
    assert list(parts) == []


def test_all_that_a_query_can_say(gateway, live, client, clock):
    said = {"context": 3, "version": "2", "explain": True, "salt": 0, "no_cache": True, "candidate_models": ["a"]}
    live.end()
    assert list(client.stream("a/b", [1.5], user="ann", timeout=40, **said)) == []
    (heard,) = gateway.heard
    assert (heard.method, heard.path, heard.body) == ("POST", "/a%2Fb/predict", {"input": [1.5], "uid": "ann"} | said)
    assert heard.headers.get_all("Accept") == ["text/event-stream"]
    assert heard.headers["Content-Type"] == "application/json"
    assert heard.headers["X-Timeout-Ms"] == "39750"


def test_what_a_part_is(live, client):
    """What JSON says of its output, or of all if they have names."""
    live.part(None)
    live.part({"x": 1})
    live.part("a", outputs={"text": "a", "scores": [0.5]}, confidence=0.5)
    live.next.put(b': a comment\n\nevent: newer\ndata: 1\n\ndata: {"output":\r\ndata: [1]}\r\n\r\n')
    live.end()
    assert list(client.stream("app", 1)) == [None, {"x": 1}, {"text": "a", "scores": [0.5]}, [1]]


def _said(random):
    """Parts of an answer and its end as a gateway may write them, and what they are."""
    outputs = [
        random.choice(["", "a b", "bé\u2028\U0001f600", "data: x\n\r\n", None, 1.5, [1, [2]], {"x": "\r"}])
        for _ in range(random.randrange(6))
    ]
    text = []
    for output in outputs:
        data = json.dumps({"output": output}, ensure_ascii=random.random() < 0.5)
        before, space = random.choice(["", ": a comment\n", "id: 1\n", "\n"]), " " * random.randrange(2)
        text.append(f"{before}data:{space}{data}\n\n".replace("\n", random.choice(["\n", "\r\n"])))
    return ("".join(text) + f"event: end\ndata: {json.dumps(ANSWER)}\n\n").encode(), outputs


def _split(random, text):
    """The text in pieces that begin and end anywhere."""
    cuts = sorted(random.sample(range(1, len(text)), random.randrange(min(len(text) - 1, 12))))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def test_parts_are_the_same_however_their_bytes_are_split(gateway, client):
    random = Random(1)
    for again in range(40):
        text, outputs = _said(random)
        lives = [Live(), Live()]
        for live in lives:
            for piece in _split(random, text) if again else [text[at : at + 1] for at in range(len(text))]:
                live.next.put(piece)
            live.next.put(b"")
        gateway.say(*lives)

        async def awaited(client):
            parts = client.stream("app", 1)
            return [part async for part in parts], parts.answer

        parts = client.stream("app", 1)
        assert (list(parts), parts.answer.query_id) == (outputs, 7), text
        got, answer = use(gateway, awaited)
        assert (got, answer.query_id) == (outputs, 7), text


def test_a_default_has_no_parts(live, client):
    live.end({"query_id": 7, "output": "?", "default": True, "default_explanation": "Refused: busy"})
    parts = client.stream("app", 1)
    assert list(parts) == []
    assert (parts.answer.output, parts.answer.default, parts.answer.cause) == ("?", True, "Refused: busy")


def test_an_answer_that_is_cut(live, client):
    live.part("a")
    live.cut("Model error: ValueError: too blue")
    parts = client.stream("app", 1)
    assert next(parts) == "a"
    with pytest.raises(topsail.AnswerCut, match="^Answer cut: Model error: ValueError: too blue$") as e:
        next(parts)
    assert e.value.cause == "Model error: ValueError: too blue"
    assert isinstance(e.value, topsail.TopsailError)
    assert parts.answer is None
    assert list(parts) == []


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (400, {"error": "Bad", "cause": "a vector"}, topsail.BadRequest, "Bad: a vector"),
        (401, {"error": "Unauthorized", "cause": "a key"}, topsail.Unauthorized, "Unauthorized: a key"),
        (404, {"error": "Unknown app", "cause": "app"}, topsail.UnknownApp, "Unknown app: app"),
        (429, {"error": "Too many", "cause": "later"}, topsail.TooManyRequests, "Too many: later"),
        (*UNAVAILABLE, topsail.Unavailable, "stopping"),
    ],
)
def test_errors_before_the_first_part(gateway, client, clock, status, body, error, says):
    gateway.always = status, body
    with pytest.raises(error, match=says) as e:
        next(client.stream("app", 1, timeout=PATIENCE))
    assert e.value.status == status


def test_an_input_that_cannot_be_sent(gateway, client):
    with pytest.raises(topsail.BadRequest):
        client.stream("app", None)
    assert gateway.heard == []


def test_it_is_repeated_until_it_begins(gateway, client):
    live = Live()
    live.part("a")
    live.end()
    gateway.say(UNAVAILABLE, CUT, live)
    assert list(client.stream("app", 1)) == ["a"]
    assert gateway.bodies() == [{"input": 1}] * 3


def test_it_is_not_repeated_once_it_has_begun(gateway, live, client):
    live.part("a")
    parts = client.stream("app", 1)
    assert next(parts) == "a"
    live.next.put(CUT)
    with pytest.raises(topsail.Unavailable, match="the stream from .* broke"):
        next(parts)
    assert list(parts) == []
    assert len(gateway.heard) == 1


def test_a_stream_without_an_end(gateway, live, client):
    live.part("a")
    live.next.put(b"")
    parts = client.stream("app", 1)
    assert next(parts) == "a"
    with pytest.raises(topsail.Unavailable, match="broke: it ended before the answer"):
        next(parts)


def test_a_gateway_that_knows_no_parts(gateway, client):
    with pytest.raises(topsail.ServerError, match="does not answer in parts: update it, or use predict"):
        next(client.stream("app", 1))
    assert len(gateway.heard) == 1


@pytest.mark.parametrize(
    "event", [b"data: [1]\n\n", b"data: {}\n\n", b"data: {\n\n", b'event: end\ndata: {"output": 1}\n\n']
)
def test_what_is_no_answer(live, client, event):
    live.next.put(event)
    with pytest.raises(topsail.ServerError, match="this is no part of an answer|an event is not JSON"):
        next(client.stream("app", 1))
    assert live.left.wait(PATIENCE)


def test_no_first_part_in_time(gateway, client, clock):
    gateway.always = HANG
    with pytest.raises(topsail.Timeout, match="did not answer in time"):
        next(client.stream("app", 1, timeout=0.1))
    assert len(gateway.heard) <= 1  # on a slow machine its time is up before the gateway has heard it


def test_no_next_part_in_time(gateway, live, client):
    live.part("a")
    parts = client.stream("app", 1)
    assert next(parts) == "a"
    grow_impatient(parts)
    with pytest.raises(topsail.Timeout, match="no part came from .* within 60 s"):
        next(parts)
    assert live.left.wait(PATIENCE)
    assert len(gateway.heard) == 1


def test_time_is_not_for_the_whole(live, client, clock):
    parts = client.stream("app", 1)
    for _ in range(5):
        live.part("a")
        assert next(parts) == "a"
        clock.now += PATIENCE
    live.end()
    assert list(parts) == []


def test_connections_with_a_stream_are_not_used_again(gateway, live, client):
    live.part("a")
    parts = client.stream("app", 1)
    assert next(parts) == "a"
    assert client.predict("app", 1).output == 1
    live.end()
    assert list(parts) == []
    other = Live()
    gateway.say(other)
    other.part("a")
    left = client.stream("app", 1)
    assert next(left) == "a"
    left.close()
    assert client.predict("app", 1).output == 1
    streams = {gateway.heard[i].client for i in (0, 2)}
    assert not streams & {gateway.heard[i].client for i in (1, 3)}


def test_closing_cancels(live, client):
    live.part("a")
    with client.stream("app", 1) as parts:
        assert next(parts) == "a"
        assert not live.left.is_set()
    assert live.left.wait(PATIENCE)
    assert list(parts) == []
    assert parts.answer is None


def test_what_is_closed_before_it_begins_asks_nothing(gateway, client):
    parts = client.stream("app", 1)
    parts.close()
    assert list(parts) == []
    assert gateway.heard == []


@pytest.mark.parametrize("tls", [False, True])
def test_closing_ends_the_reading_of_another_thread(tls):
    gateway, live = Gateway(tls), Live()
    gateway.say(live)
    try:
        with topsail.Client(gateway.url, timeout=10 * PATIENCE, verify=False) as client:
            parts, read, first = client.stream("app", 1), [], threading.Event()

            def reading():
                for part in parts:
                    read.append(part)
                    first.set()

            thread = threading.Thread(target=reading)
            thread.start()
            live.part("a")
            assert first.wait(PATIENCE)
            parts.close()
            thread.join(PATIENCE)
            assert not thread.is_alive()
            assert read == ["a"]
            assert live.left.wait(PATIENCE)
    finally:
        gateway.stop()


def test_leaving_the_loop_cancels(gateway, live):
    live.part("a")
    with topsail.Client(gateway.url) as client:
        parts = client.stream("app", 1)
        for part in parts:
            assert part == "a"
            break
        assert live.left.wait(PATIENCE)


def test_what_is_dropped_is_cancelled(gateway, live):
    live.part("a")
    with topsail.Client(gateway.url) as client:
        parts = client.stream("app", 1)
        assert next(parts) == "a"
        parts.itself = parts
        del parts
        gc.collect()
        assert live.left.wait(PATIENCE)


# Awaited.


def test_parts_awaited(gateway, live):
    async def how(client):
        live.part("a")
        said = []
        async with client.stream("app", 1) as parts:
            async for part in parts:
                said.append(part)
                live.part("b") if len(said) == 1 else live.end()
        assert said == ["a", "b"]
        assert parts.answer == topsail.Prediction(1, False, 7, raw=ANSWER)
        return [part async for part in parts]

    assert use(gateway, how) == []


def test_leaving_the_loop_cancels_awaited(gateway, live):
    async def how(client):
        live.part("a")
        parts = client.stream("app", 1)
        async for part in parts:
            assert part == "a"
            break
        assert await asyncio.to_thread(live.left.wait, PATIENCE)

    use(gateway, how)


def test_what_is_dropped_is_cancelled_awaited(gateway, live):
    async def how(client):
        live.part("a")
        parts = client.stream("app", 1)
        assert await anext(parts) == "a"
        del parts
        gc.collect()
        assert await asyncio.to_thread(live.left.wait, PATIENCE)

    use(gateway, how)


def test_a_cancelled_task_cancels(gateway, live):
    async def how(client):
        live.part("a")
        parts = client.stream("app", 1)
        assert await anext(parts) == "a"
        waiting = asyncio.create_task(anext(parts))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await asyncio.to_thread(live.left.wait, PATIENCE)
        assert [part async for part in parts] == []

    use(gateway, how)


def test_the_client_ends_what_is_left(gateway, live):
    async def how(client):
        live.part("a")
        parts = client.stream("app", 1)
        assert await anext(parts) == "a"
        return parts

    parts = use(gateway, how)
    assert live.left.wait(PATIENCE)
    with pytest.raises(topsail.Unavailable, match="it ended before the answer"):
        asyncio.run(_rest(parts))


async def _rest(parts):
    return [part async for part in parts]


def test_many_streams_at_once(gateway):
    """More than `concurrency`, which is for calls that are answered at once."""
    lives = [Live() for _ in range(20)]
    gateway.say(*lives)

    async def how():
        async with topsail.AsyncClient(gateway.url, timeout=PATIENCE, concurrency=1) as client:
            streams = [client.stream("app", [i]) for i in range(20)]
            for live in lives:
                live.part("a")
            assert await asyncio.gather(*map(anext, streams)) == ["a"] * 20
            for live in lives:
                live.end()
            assert await asyncio.gather(*map(_rest, streams)) == [[]] * 20

    asyncio.run(how())
    assert sorted(json.dumps(b) for b in gateway.bodies()) == sorted(json.dumps({"input": [i]}) for i in range(20))
