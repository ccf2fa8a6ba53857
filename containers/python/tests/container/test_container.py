"""A real `python -m topsail` process against a sidecar of plain sockets."""

import platform
import struct

import pytest
from sidecar import Container

from topsail.container.input_type import DOUBLES, STRINGS
from topsail.optional import lz4_block
from topsail.protocol import predict
from topsail.protocol.constants import Feature, Kind, State, Status
from topsail.protocol.predict import Input
from topsail.protocol.report import HISTOGRAM


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """One container for all tests that leave it alive."""
    folder = tmp_path_factory.mktemp("many")
    with Container(folder, "-m", "topsail", "models:Many") as container, container.accept() as peer:
        yield peer.ready()


# The opening.


def test_hello_says_who_it_is(start):
    container = start("Ints", TOPSAIL_INPUT_TYPE="ints", TOPSAIL_TOKEN="secret", TOPSAIL_INPUT_LENGTH="3")
    with container.accept() as peer:
        mine = peer.greet()
        assert (mine.role, mine.name, mine.token, mine.max_frame) == (3, "replica-1", b"secret", 64 << 20)
        wanted = Feature.STAGES | Feature.TENSORS | Feature.PARTS | Feature.MEMORY | (Feature.LZ4 if lz4_block else 0)
        assert mine.features == wanted
        assert platform.python_version() in mine.software
        ready = peer.wait_ready()
        assert (ready.id, ready.input_type, ready.input_length) == (1, 2, 3)
        assert (ready.model, ready.version, ready.stage) == ("test", "1", "")


def test_loading_is_announced_before_the_model_is_made_and_ready_after_its_warm_up(start):
    container = start("Slow")
    with container.accept() as peer:
        peer.greet()
        loading = peer.announced()
        assert (loading.state, loading.input_type, loading.input_length) == (State.LOADING, 4, 0)
        container.wait_for("loading")
        peer.send(Kind.PING, struct.pack("<Q", 5))
        assert struct.unpack("<Q", peer.expect(Kind.PONG)) == (5,)  # also while loading
        assert not (container.folder / "warming").exists()
        container.touch("loaded")
        ready = peer.announced()
        assert (ready.state, ready.input_length) == (State.READY, 2)
        assert (container.folder / "warming").exists()


def test_a_model_knows_its_input_type_when_nobody_else_does(start):
    container = start("Ints", TOPSAIL_INPUT_TYPE="")
    with container.accept() as peer:
        peer.greet()
        assert peer.wait_ready().input_type == 2


# Batches.


def test_a_batch(many):
    assert many.predict([1.0], [2.5, 9.0], [-3.0], batch=77) == [1.0, 2.5, -3.0]
    assert many.batch == 77


def test_many_batches(many):
    for n in (1, 2, 500, 1):
        assert many.predict(*[[float(i % 100)] for i in range(n)]) == [float(i % 100) for i in range(n)]


def test_one_bad_input_fails_alone(many):
    assert many.predict([1.0], [100.0], [2.0]) == [1.0, (Status.MODEL_ERROR, "ValueError: 100 is too much"), 2.0]


def test_wrong_lengths(many):
    error = (Status.MODEL_ERROR, "ValueError: predict returned 1 outputs for 2 inputs")
    assert many.predict([1.0], [200.0]) == [error, error]
    error = (Status.MODEL_ERROR, "TypeError: predict returned a dict, not a list of 1 outputs")
    assert many.predict([300.0]) == [error]


def test_errors_of_single_outputs(many):
    no, one, raw = many.predict([400.0], [1.0], [500.0])
    assert no == (Status.MODEL_ERROR, "Error: no such thing")
    assert one == 1.0
    assert raw[1].startswith("TypeError: bytes cannot be an output")


def test_confidence(many):
    many.ask([600.0])
    [entry] = many.answer()
    assert entry.confidence == 0.5


def test_a_wrong_input_type_is_that_inputs_own_fault(many):
    [(status, message)] = many.predict("text", kind=STRINGS)
    assert (status, message) == (Status.BAD_INPUT, "this model takes one input of type doubles, and got string")


def test_expired_inputs(many):
    assert many.predict([1.0], left=0) == [(Status.EXPIRED, "the time was up before the model could run")]
    assert many.predict([1.0], left=60_000_000) == [1.0]


def test_an_unknown_model(many):
    answers = many.predict([1.0], [2.0], model=9)
    assert answers == [(Status.UNKNOWN_MODEL, "this container announced no model 9")] * 2


def test_frames_that_ask_for_nothing_are_taken_silently(many):
    many.send(Kind.CANCEL, struct.pack("<QI", 1, 0))
    many.send(Kind.PONG, bytes(8))
    many.send(Kind.FEEDBACK, struct.pack("<II", 1, 0))
    many.send(200, b"of a later version")
    assert many.predict([3.0]) == [3.0]


def test_a_batch_that_comes_in_pieces(many):
    many.ask([1.0])
    many.answer()
    body = predict.encode(5, 1, [Input(0xFFFFFFFF, [DOUBLES.value([4.0])])])
    data = struct.pack("<IBBH", len(body), Kind.PREDICT, 0, 0) + body
    for i in range(0, len(data), 5):
        many.sock.sendall(data[i : i + 5])
    assert [e.status for e in many.answer()] == [Status.OK]


def test_two_batches_at_once_are_answered_in_turn(many):
    many.ask([1.0], batch=10)
    many.ask([2.0], batch=11)
    many.answer()
    assert many.batch == 10
    many.answer()
    assert many.batch == 11


def test_compressed_batches_where_both_sides_can(start):
    container = start("Many")
    with container.accept() as peer:
        peer.greet(features=1)
        peer.wait_ready()
        body = predict.encode(1, 1, [Input(0xFFFFFFFF, [DOUBLES.value([7.0] * 100)])])
        block = lz4_block.compress(body, store_size=False) if lz4_block else body
        peer.send(Kind.PREDICT, struct.pack("<I", len(body)) + block, flags=1)
        if lz4_block:
            assert [e.status for e in peer.answer()] == [Status.OK]
        else:
            assert "was not agreed on" in peer.reason()


# Feedback.


def test_a_model_learns_between_batches(start):
    container = start("Online")
    with container.accept() as peer:
        peer.ready()
        assert peer.predict([1.0], [2.0]) == [0.0, 0.0]
        peer.teach(([1.0], 7.0), ([2.0], 8.0), user="ann")
        assert peer.metrics()["accuracy"].value == 0.5
        assert peer.predict([1.0], [2.0], [3.0]) == [7.0, 8.0, 0.0]


def test_batches_go_before_feedback(start):
    container = start("Online")
    with container.accept() as peer:
        peer.ready().ask([-1.0], batch=1)
        container.wait_for("in-1")
        peer.teach(([1.0], 7.0))
        peer.ask([1.0], batch=2)
        peer.send(Kind.PING, bytes(8))
        peer.expect(Kind.PONG)  # so all has arrived
        container.touch("out-1")
        peer.answer()
        [entry] = peer.answer()
        assert struct.unpack("<d", entry.values[0].data) == (0.0,)  # not yet learned
        peer.metrics()  # with the accuracy, so it has learned
        assert peer.predict([1.0]) == [7.0]


def test_pings_are_answered_while_a_model_learns(start):
    container = start("Online")
    with container.accept() as peer:
        peer.ready().teach(([1.0], "wait"), ([1.0], 7.0))
        container.wait_for("learning")
        peer.ask([1.0])
        peer.send(Kind.PING, struct.pack("<Q", 5))
        assert struct.unpack("<Q", peer.expect(Kind.PONG)) == (5,)
        container.touch("learned")
        [entry] = peer.answer()
        assert struct.unpack("<d", entry.values[0].data) == (7.0,)


def test_a_model_that_fails_to_learn_serves_on(start):
    container = start("Online")
    with container.accept() as peer:
        peer.ready().teach(([1.0], "raise"), user="ann")
        container.wait_to_hear("ValueError: ann is wrong")
        metrics = peer.metrics()
        assert metrics["correct_failures"].value == 1.0
        assert peer.predict([1.0]) == [0.0]
        peer.send(Kind.FEEDBACK, struct.pack("<II", 1, 9))
        assert "feedback count at byte 8: 9 entries are promised and 0 bytes are left" in peer.reason()


# Metrics.


def test_metrics_come_once_more_at_the_end(start):
    container = start("Many")
    with container.accept() as peer:
        peer.ready()
        for i in range(3):
            peer.ask([float(i)])
            peer.expect(Kind.REPLY)
        container.terminate()
        peer.expect(Kind.DRAIN)
        last = peer.metrics()
        assert (last["calls"].value, last["calls"].labels, last["calls"].help) == (
            3.0,
            (("kind", "test"),),
            "Calls of predict.",
        )
        assert (last["sizes"].kind, last["sizes"].observed, last["sizes"].buckets) == (
            HISTOGRAM,
            3,
            ((1.0, 3), (10.0, 3)),
        )
        assert peer.expect(Kind.BYE, skip=()) is not None


# Liveness.


def test_ping_is_answered_while_the_model_computes(start):
    container = start("Gated")
    with container.accept() as peer:
        peer.ready().ask([-1.0])
        container.wait_for("in-1")
        for nonce in (1, 1 << 63):
            peer.send(Kind.PING, struct.pack("<Q", nonce))
            assert struct.unpack("<Q", peer.expect(Kind.PONG)) == (nonce,)
        container.touch("out-1")
        assert [e.status for e in peer.answer()] == [Status.OK]


def test_a_silent_sidecar_is_pinged(start):
    with start("Many").accept() as peer:
        peer.ready()
        assert len(peer.expect(Kind.PING)) == 8


# Other versions, and a sidecar that breaks the rules.


def test_a_later_minor_version_with_unknown_fields_is_fine(start):
    with start("Many").accept() as peer:
        peer.expect(Kind.HELLO)
        peer.send(Kind.HELLO, struct.pack("<4sBBHQI", b"TPS2", 9, 2, 0, 0xFE, 65536) + b"\x63\2\0\0\0hi")
        peer.wait_ready()
        assert peer.predict([1.0]) == [1.0]


def test_too_many_batches_at_once_are_an_error(start):
    container = start("Gated")
    with container.accept() as peer:
        peer.ready().ask([-1.0], batch=1)
        container.wait_for("in-1")
        for batch in range(2, 7):
            peer.ask([1.0], batch=batch)
        assert "too many batches were sent at once" in peer.reason()
