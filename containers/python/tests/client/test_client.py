"""The client against a real HTTP server: what it sends, what it makes of answers, and what of their absence."""

import base64
import json
import pickle
import socket
import struct
import subprocess
import sys
import threading
import time
from array import array

import pytest
from gateway import ANSWER, CLOSE, CUT, HANG, LEARNED, TRICKLE, Gateway, certificate
from sidecar import PATIENCE, environment

import topsail
from topsail.client import blocking, connections, target
from topsail.client.deadline import Deadline
from topsail.client.retry import repeated
from topsail.optional import numpy

UNAVAILABLE = 503, {"error": "Unavailable", "cause": "this gateway is stopping: send it again"}


@pytest.fixture
def gateway():
    gateway = Gateway()
    yield gateway
    gateway.stop()


@pytest.fixture
def client(gateway, connect):
    return connect(gateway.url, timeout=PATIENCE)


@pytest.fixture
def nobody():
    """The address of a port that is taken, and where nobody listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{s.getsockname()[1]}"


def inputs():
    yield [1, 2.5], [1, 2.5]
    yield (1, 2), [1, 2]
    yield "text ünï", "text ünï"
    yield b"\x00\xff", base64.b64encode(b"\x00\xff").decode()
    yield bytearray(b"ab"), "YWI="
    yield memoryview(b"ab"), "YWI="
    yield array("d", [1.5, 2]), [1.5, 2]
    if numpy is not None:
        yield numpy.array([1.5, 2.0]), [1.5, 2.0]
        yield numpy.array([1, 2], "int32"), [1, 2]
        yield numpy.array([0.5], "float32"), [0.5]
        yield [numpy.float64(1.5), numpy.int32(2)], [1.5, 2]


@pytest.mark.parametrize(("given", "sent"), list(inputs()), ids=lambda v: type(v).__name__)
def test_inputs_as_json(gateway, client, given, sent):
    assert client.predict("app", given).output == 1
    gateway.say((200, {"batch_predictions": [ANSWER, ANSWER]}))
    assert len(client.predict_batch("app", iter([given, given]))) == 2
    assert gateway.bodies() == [{"input": sent}, {"input_batch": [sent, sent]}]


@pytest.mark.parametrize("of", [list, iter, list if numpy is None else numpy.array])
def test_a_batch_of_one(gateway, client, of):
    """Which is answered as its input alone."""
    assert client.predict_batch("app", of([[1.0]])) == [topsail.Prediction(1, False, 7, raw=ANSWER)]
    assert gateway.bodies() == [{"input_batch": [[1.0]]}]


def test_rows_of_a_matrix_are_inputs(gateway, client):
    gateway.say((200, {"batch_predictions": []}))
    matrix = [[1, 0], [0, 1]] if numpy is None else numpy.eye(2)
    assert client.predict_batch("app", matrix) == []
    assert gateway.bodies() == [{"input_batch": [[1, 0], [0, 1]]}]


@pytest.mark.parametrize(
    "bad",
    [[float("nan")], [float("inf")], [object()], {1, 2}, None, [1 + 2j]],
    ids=["nan", "inf", "object", "set", "None", "complex"],
)
def test_inputs_that_cannot_be_sent(gateway, client, bad):
    for call in (lambda: client.predict("app", bad), lambda: client.predict_batch("app", [bad])):
        with pytest.raises(topsail.BadRequest) as e:
            call()
        assert e.value.status is None
    assert gateway.heard == []


@pytest.mark.parametrize("one", ["text", b"bytes"])
def test_one_input_is_no_batch(gateway, client, one):
    with pytest.raises(topsail.BadRequest, match="is one input: put it into a list"):
        client.predict_batch("app", one)
    assert gateway.heard == []


def test_all_that_a_query_can_say(gateway, client):
    options = {"user": "ann", "context": 3, "version": "2", "explain": True, "salt": 0, "no_cache": True}
    client.predict("a/b ü?", [1], candidate_models=["c"], **options)
    assert len(client.predict_batch("app", [[1]], candidate_models=["a", "b:2"], **options)) == 1
    said = {"uid": "ann", "context": 3, "version": "2", "explain": True, "salt": 0, "no_cache": True}
    [one, batch] = gateway.bodies()
    assert one == {"input": [1], "candidate_models": ["c"]} | said
    assert batch == {"input_batch": [[1]], "candidate_models": ["a", "b:2"]} | said
    assert [h.path for h in gateway.heard] == ["/a%2Fb%20%C3%BC%3F/predict", "/app/predict"]


def test_the_gateway_is_given_less_time_than_there_is(gateway, client, clock):
    client.predict("app", [1], timeout=40)
    client.predict("app", [1])
    assert [h.headers["X-Timeout-Ms"] for h in gateway.heard] == ["39750", "59750"]


@pytest.mark.parametrize(("left", "told"), [(5, "4750"), (2, "1800"), (0.5, "450"), (0, "1")])
def test_of_little_time_a_tenth_is_for_the_way(clock, left, told):
    assert target._milliseconds(Deadline(left)) == told


def test_everything_in_an_answer(gateway, client):
    answer = {
        "query_id": 2**52,
        "output": {"label": "cat"},
        "default": True,
        "default_explanation": "Refused: too much to do",
        "missing": ["slow:1"],
        "shed": ["big:1"],
        "failover": ["main:2"],
        "model": "small:1",
        "passed_over": [{"model": "big:1", "why": "refused_late"}],
        "explanation": {"policy": "vote"},
        "newer": 1,
    }
    gateway.say((200, answer))
    got = client.predict("app", [1])
    assert got == topsail.Prediction(
        output={"label": "cat"},
        default=True,
        query_id=2**52,
        cause="Refused: too much to do",
        missing=["slow:1"],
        shed=["big:1"],
        failover=["main:2"],
        model="small:1",
        passed_over=[{"model": "big:1", "why": "refused_late"}],
        explanation={"policy": "vote"},
        raw=answer,
    )
    assert client.predict("app", [1]) == topsail.Prediction(1, False, 7, raw=ANSWER)


def test_a_large_input(gateway, client):
    """It is not copied to be sent, and the connection is used again."""
    text = "x" * (3 << 20)
    gateway.say((200, ANSWER | {"output": text}))
    assert client.predict("app", text).output == text
    assert client.predict("app", [1]).output == 1
    assert [b["input"] for b in gateway.bodies()] == [text, [1]]
    assert len({h.client for h in gateway.heard}) == 1


def test_feedback(gateway, client):
    gateway.always = 200, LEARNED
    got = client.feedback("app", 0, query_id=7, user="ann", context="shoes")
    assert (got.query_id, got.joined, got.duplicate, got.loss, got.trained) == (7, "record", False, 0, [{}])
    client.feedback("app", False, input=b"a")
    client.feedback("app", reward=0.5, query_id=7)
    client.feedback("app", 1, input=[2], feedback_id="f")
    assert gateway.bodies() == [
        {"label": 0, "query_id": 7, "uid": "ann", "context": "shoes"},
        {"label": False, "input": "YQ=="},
        {"reward": 0.5, "query_id": 7},
        {"label": 1, "input": [2], "feedback_id": "f"},
    ]
    assert {(h.path, h.headers["Accept"]) for h in gateway.heard} == {("/app/update", "application/json")}


def test_feedback_in_batches(gateway, client):
    gateway.always = 200, {"feedback": [LEARNED, LEARNED]}
    got = client.feedback_batch("app", [{"query_id": 1, "label": 0, "user": 5}, {"input": [1], "reward": 1}])
    assert [g.query_id for g in got] == [7, 7]
    assert gateway.bodies() == [
        {"feedback_batch": [{"query_id": 1, "label": 0, "uid": 5}, {"input": [1], "reward": 1}]}
    ]
    with pytest.raises(topsail.BadRequest, match="feedback has no 'uid': it takes label, reward"):
        client.feedback_batch("app", [{"query_id": 1, "label": 0, "uid": 5}])


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (400, {"error": "Json error", "cause": "no input"}, topsail.BadRequest, "Json error: no input"),
        (404, {"error": "Unknown app", "cause": "register it"}, topsail.UnknownApp, "Unknown app: register it"),
        (404, {"error": "Not found", "cause": "no such path"}, topsail.BadRequest, "Not found: no such path"),
        (413, {"error": "Too large", "cause": "1 MB"}, topsail.BadRequest, "Too large: 1 MB"),
        (401, {"error": "Unauthorized", "cause": "a key"}, topsail.Unauthorized, "Unauthorized: a key"),
        (403, {"error": "Forbidden", "cause": "a role"}, topsail.Permission, "Forbidden: a role"),
        (408, {"error": "Request timeout", "cause": "10s"}, topsail.Timeout, "Request timeout: 10s"),
        (500, {"error": "Internal error", "cause": "the log"}, topsail.ServerError, "Internal error: the log"),
        (400, b"a sentence", topsail.BadRequest, "a sentence (status 400)"),
        (302, b"", topsail.ServerError, "there was an empty answer (status 302)"),
        (500, b"[" * 100_000, topsail.ServerError, "[" * 200 + " (status 500)"),
        (200, b"<html>\xff", topsail.ServerError, "this is no answer of a Topsail gateway: '<html>\ufffd'"),
        (200, b"[]", topsail.ServerError, "this is no answer of a Topsail gateway: '[]'"),
        (200, b"{}", topsail.ServerError, "this is no answer of a Topsail gateway: '{}'"),
    ],
)
def test_errors_are_not_repeated(gateway, client, status, body, error, says):
    gateway.always = status, body
    with pytest.raises(topsail.TopsailError) as e:
        client.predict("app", [1])
    assert (type(e.value), str(e.value), e.value.status) == (error, says, status)
    assert len(gateway.heard) == 1
    again = pickle.loads(pickle.dumps(e.value))
    assert (type(again), str(again), again.status) == (error, says, status)


@pytest.mark.parametrize("trouble", [UNAVAILABLE, (429, b"slower"), (502, b""), CUT], ids=str)
def test_queries_are_repeated(gateway, client, trouble):
    gateway.say(trouble, trouble)
    assert client.predict("app", [1]).output == 1
    assert len(gateway.heard) == 3
    limits = [int(h.headers["X-Timeout-Ms"]) for h in gateway.heard]
    assert limits[0] > limits[1] > limits[2]


@pytest.mark.parametrize("trouble", [UNAVAILABLE, CUT], ids=str)
def test_only_feedback_to_an_answer_is_repeated(gateway, client, trouble):
    gateway.always = 200, LEARNED
    gateway.say(trouble)
    assert client.feedback("app", 0, query_id=7, input=[1]).joined == "record"
    gateway.say(trouble)
    assert client.feedback("app", 0, input=[1], feedback_id=1).joined == "record"
    gateway.say(trouble)
    with pytest.raises(topsail.Unavailable):
        client.feedback("app", 0, input=[1])
    gateway.say(trouble)
    with pytest.raises(topsail.Unavailable):
        client.feedback_batch("app", [{"query_id": 7, "label": 0}, {"input": [1], "label": 0}])
    gateway.say(trouble, (200, {"feedback": [LEARNED]}))
    assert len(client.feedback_batch("app", [{"query_id": 7, "label": 0}])) == 1
    assert len(gateway.heard) == 8


def test_repeating_ends_with_the_time(gateway, client, clock):
    gateway.always = UNAVAILABLE
    with pytest.raises(topsail.Unavailable, match="Unavailable: this gateway is stopping"):
        client.predict("app", [1], timeout=30)
    assert 128 < clock.now < 130  # no attempt was left out for which there was time
    assert len(gateway.heard) > 30


@pytest.mark.parametrize(("repeatable", "raised"), [(True, topsail.Unavailable), (False, topsail.Timeout)])
def test_a_last_try_without_time(repeatable, raised):
    first, second = topsail.Unavailable("not now"), topsail.Timeout("too late")
    first.unheard = True
    tries = [first, second]

    async def once(_):
        raise tries.pop(0)

    with pytest.raises(raised):
        blocking.finished(repeated(once, Deadline(10), repeatable, blocking.sleep))
    assert not tries


def test_retry_after_is_heeded(gateway, client):
    gateway.say((*UNAVAILABLE, ("Retry-After", "600"), ("Connection", "close")))
    with pytest.raises(topsail.Unavailable) as e:
        client.predict("app", [1])
    assert (e.value.retry_after, len(gateway.heard)) == (600, 1)


@pytest.mark.parametrize("how", [HANG, TRICKLE])
def test_an_answer_that_does_not_come(gateway, client, clock, how):
    clock.step = 0.01
    gateway.always = how
    with pytest.raises(topsail.Timeout, match="did not answer in time$"):
        client.predict("app", [1], timeout=0.2)
    assert len(gateway.heard) <= 1  # on a slow machine its time is up before the gateway has heard it


@pytest.mark.bars
@pytest.mark.parametrize(
    ("how", "error"), [(HANG, topsail.Timeout), (TRICKLE, topsail.Timeout), (UNAVAILABLE, topsail.Unavailable)], ids=str
)
def test_how_long_a_call_takes_that_gets_no_answer(gateway, client, how, error):
    gateway.always = how
    start = time.monotonic()
    with pytest.raises(error):
        client.predict("app", [1], timeout=0.3)
    assert 0.1 < time.monotonic() - start < 0.5


@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_at_all(gateway, client, timeout):
    with pytest.raises(topsail.Timeout):
        client.predict("app", [1], timeout=timeout)
    client.predict("app", [1])
    with pytest.raises(topsail.Timeout):
        client.predict("app", [1], timeout=timeout)
    assert len(gateway.heard) == 1


def test_nobody_is_there(connect, clock, nobody):
    with pytest.raises(topsail.Unavailable, match=f"{nobody} cannot be reached: .*; is it running there") as e:
        connect(nobody).feedback("app", 0, input=[1], timeout=PATIENCE)
    assert e.value.unheard
    assert 108 < clock.now <= 110  # and not 160


def test_a_server_that_says_nothing(connect):
    """Not even to begin with TLS."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        client = connect(f"https://127.0.0.1:{s.getsockname()[1]}", verify=False)
        with pytest.raises(topsail.Timeout, match="took no connection in time"):
            client.predict("app", [1], timeout=0.1)


def test_a_server_that_resets(connect):
    with socket.create_server(("127.0.0.1", 0)) as s:

        def reset():
            connection, _ = s.accept()
            connection.recv(1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

        thread = threading.Thread(target=reset)
        thread.start()
        client = connect(f"http://127.0.0.1:{s.getsockname()[1]}", timeout=PATIENCE)
        with pytest.raises(topsail.Unavailable, match="the connection to .* broke: .*reset by peer"):
            client.feedback("app", 0, input=[1])
        thread.join()


def test_a_closed_client_opens_new_connections(gateway):
    client = topsail.Client(gateway.url)
    client.predict("app", [1])
    client.close()
    client.predict("app", [1])
    client.close()
    assert len({h.client for h in gateway.heard}) == 2


def test_a_gateway_that_comes_back(connect, clock):
    """Feedback for an input is repeated too, if nobody can have heard it."""
    gateway = Gateway(listening=False)
    gateway.always = 200, LEARNED
    clock.meanwhile = [lambda: None, gateway.listen]
    try:
        assert connect(gateway.url, timeout=PATIENCE).feedback("app", 0, input=[1]).joined == "record"
        assert (len(gateway.heard), clock.meanwhile) == (1, [])
    finally:
        gateway.stop()


def test_connections_are_kept(gateway, client):
    for _ in range(5):
        client.predict("app", [1])
    assert len({h.client for h in gateway.heard}) == 1


def test_a_connection_that_was_closed_meanwhile_costs_nothing(gateway, client):
    """So that feedback, which may not be sent twice, is not lost on it either."""
    gateway.always = 200, LEARNED
    for n in range(1, 20):
        gateway.say(CLOSE)
        client.feedback("app", 0, input=[1])
        while len(gateway.closed) < n:
            time.sleep(0.001)
    assert len(gateway.heard) == 19


def test_an_answer_in_chunks(gateway, client):
    text = json.dumps(ANSWER).encode()
    chunks = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (5, text[:5], len(text) - 5, text[5:])
    gateway.always = 200, chunks, ("Transfer-Encoding", "chunked")
    assert [client.predict("app", [1]).output for _ in range(2)] == [1, 1]
    assert len({h.client for h in gateway.heard}) == 1


def test_an_answer_without_end(gateway, client, monkeypatch):
    monkeypatch.setattr(connections, "MOST_BYTES", 10)
    with pytest.raises(topsail.ServerError, match="more than 10 bytes"):
        client.predict("app", [1])


def test_many_threads(gateway, client):
    def work(n):
        for i in range(20):
            client.predict("app", [n, i])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(b["input"] for b in gateway.bodies()) == [[n, i] for n in range(8) for i in range(20)]
    assert len({h.client for h in gateway.heard}) <= 8


def test_keys(gateway, connect):
    client = connect(gateway.url + "/base/", key="a" * 32)
    client.predict("app", [1])
    client.close()
    [heard] = gateway.heard
    assert (heard.headers["Authorization"], heard.path) == ("Bearer " + "a" * 32, "/base/app/predict")
    assert "aaa" not in repr(client)


@pytest.mark.parametrize("key", ["", "two words", "line\r\nX-Other: 1", "schlüssel"])
def test_keys_that_cannot_be_shown(key, connect):
    with pytest.raises(ValueError, match="a key is not empty"):
        connect(key=key)


@pytest.mark.parametrize("url", ["", "127.0.0.1:1337", "ftp://host", "http://", "http://ann:secret@host"])
def test_urls_that_are_none(url, connect):
    with pytest.raises(ValueError, match="is no address of a gateway"):
        connect(url)


def test_health(gateway, client, connect, nobody):
    gateway.say((200, {"status": "ok"}), (503, {"status": "draining"}), (404, b"nothing"))
    assert client.health() is True
    assert client.health() is False
    with pytest.raises(topsail.BadRequest):
        client.health()
    assert [(h.method, h.path) for h in gateway.heard] == [("GET", "/health")] * 3
    with pytest.raises(topsail.Unavailable):
        connect(nobody).health()


def test_tls(connect):
    gateway = Gateway(tls=True)
    try:
        for client in (connect(gateway.url, ca_file=certificate()), connect(gateway.url, verify=False)):
            assert [client.predict("app", [1]).output for _ in range(3)] == [1, 1, 1]
        assert len({h.client for h in gateway.heard}) == 2
        with pytest.raises(topsail.ServerError, match=r"cannot be trusted: .*ca_file names"):
            connect(gateway.url).predict("app", [1])
    finally:
        gateway.stop()


def test_containers_do_not_pay_for_the_client():
    costly = {"aiohttp", "asyncio", "http.client", "numpy", "orjson", "ssl"}
    code = f"import sys, topsail; print(sorted({costly} & sys.modules.keys()), topsail.Client)"
    said = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert said.stdout == "[] <class 'topsail.client.sync.Client'>\n"


def test_every_name_is_there():
    assert all(getattr(topsail, name) is not None for name in topsail.__all__)
    assert set(topsail.__all__) <= set(dir(topsail))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        topsail.nothing  # noqa: B018


def test_a_server_that_is_not_there_is_given_up_soon(clock, connect, nobody):
    with pytest.raises(topsail.Unavailable, match="is it running there"):
        next(connect(admin_url=nobody).apps.list(timeout=300))
    assert 108 < clock.now <= 110  # and not 400
