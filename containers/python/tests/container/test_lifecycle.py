"""How a real `python -m topsail` process stops, fails to load, loses its sidecar and falls ill."""

import signal
import struct

import pytest
from sidecar import Container, quiet

from topsail.protocol.constants import Kind, State, Status

# Stopping.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_batch_finish(start, number):
    container = start("Gated")
    with container.accept() as peer:
        peer.ready().ask([-1.0], batch=1)
        container.wait_for("in-1")
        container.process.send_signal(number)
        peer.expect(Kind.DRAIN)
        assert peer.predict([1.0], batch=2) == [(Status.DRAINING, "this container is stopping")]
        assert not (container.folder / "teardown").exists()
        container.touch("out-1")
        assert [e.status for e in peer.answer()] == [Status.OK]
        assert peer.batch == 1
        assert peer.reason() == "stopped"
        assert peer.next() is None
    assert container.ends() == 0
    assert (container.folder / "teardown").exists()
    assert "Traceback" not in container.said()


def test_batches_that_wait_are_answered_too(start):
    container = start("Gated")
    with container.accept() as peer:
        peer.ready().ask([-1.0], batch=1)
        container.wait_for("in-1")
        peer.ask([2.0], batch=2)
        peer.send(Kind.PING, bytes(8))
        peer.expect(Kind.PONG)  # so batch 2 is in the inbox
        container.terminate()
        peer.expect(Kind.DRAIN)
        container.touch("out-1")
        peer.answer()
        assert [e.status for e in peer.answer()] == [Status.OK]
        assert peer.batch == 2
        peer.expect(Kind.BYE)
    assert container.ends() == 0


def test_drain_is_said_at_once_also_when_python_cannot_run(start):
    container = start("Busy")
    with container.accept() as peer:
        peer.ready().ask([1.0])
        container.wait_for("computing")
        container.terminate()
        peer.expect(Kind.DRAIN)  # and not the reply
        container.touch("computed")
        assert [e.status for e in peer.answer()] == [Status.OK]
        peer.expect(Kind.BYE)
    assert container.ends() == 0


def test_a_second_signal_does_not_wait(start):
    container = start("Gated")
    with container.accept() as peer:
        peer.ready().ask([-1.0])
        container.wait_for("in-1")
        container.terminate()
        peer.expect(Kind.DRAIN)
        while quiet(peer):  # one signal more may come before Python has looked at the first
            container.terminate()
        assert peer.reason() == "stopped"
    assert container.ends() == 0


def test_a_signal_ends_loading(start):
    container = start("Slow")
    with container.accept() as peer:
        peer.greet()
        peer.announced()
        container.wait_for("loading")
        container.terminate()
        peer.expect(Kind.DRAIN)
        assert peer.reason()
    assert container.ends() == 0
    assert "Traceback" not in container.said()


def test_a_signal_ends_a_container_without_a_connection(start):
    container = start("Slow")
    container.listener.close()
    container.touch("loaded")
    container.wait_for("loads")
    container.terminate()
    assert container.ends() == 0


def test_a_helper_process_may_be_stopped(start):
    with start("Forking").accept() as peer:
        peer.ready()
        for _ in range(3):
            peer.ask([1.0])
            [entry] = peer.answer()  # and no DRAIN
            assert struct.unpack("<q", entry.values[0].data) == (-signal.SIGTERM,)


def test_exit_in_the_model_ends_the_container(start):
    container = start("leave")
    with container.accept() as peer:
        peer.ready().ask([1.0])
        peer.expect(Kind.DRAIN)
        assert peer.reason()
    assert container.ends() == 7


# What goes wrong while loading.


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("Broken", "the weights are not there"),
        ("ColdBroken", "warm-up failed for example 1 of 2: Error: cold"),
        ("NUMBER", "5 is no model: give a function, or a class or object with a predict method"),
        ("Missing", "models has no 'Missing'; it has "),
        ("Ints", "Ints takes ints, and is served with doubles: make input_type agree"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_told_to_both_sides(start, model, says):
    container = start(model, TEST_IMPORT="connected")
    with container.accept() as peer:
        peer.greet()
        assert peer.announced().state == State.LOADING
        container.touch("connected")  # for which a container that cannot be loaded does not wait for long
        peer.expect(Kind.DRAIN)
        assert says in peer.reason()
    assert container.ends() == 1
    assert says in container.said().splitlines()[-1]


# Disconnected connections.


def test_after_a_loss_it_dials_again_and_is_ready_at_once(start):
    container = start("Slow")
    container.touch("loaded")
    with container.accept() as peer:
        peer.ready()
    for _ in range(2):
        with container.accept() as peer:
            peer.greet()
            assert peer.announced().state == State.READY
            assert peer.predict([1.0, 2.0]) == [1.0]
    assert (container.folder / "loads").read_text() == "x"


def test_the_reply_of_a_lost_connection_is_dropped(start):
    container = start("Gated")
    with container.accept() as peer:
        peer.ready().ask([-1.0], batch=1)
        container.wait_for("in-1")
    with container.accept() as peer:
        peer.greet()
        assert peer.announced().state == State.READY
        peer.ask([2.0], batch=1)
        container.touch("out-1")
        [entry] = peer.answer()
        assert struct.unpack("<d", entry.values[0].data) == (2.0,)
        assert quiet(peer)


def test_a_bye_is_a_loss(start):
    container = start("Many")
    with container.accept() as peer:
        peer.ready().send(Kind.BYE, b"\7\0restart")
        assert peer.next() is None
    with container.accept() as peer:
        assert peer.ready().predict([1.0]) == [1.0]
    assert "the sidecar said BYE: restart" in container.said()


def test_a_container_without_a_sidecar_ends(start):
    container = start("Many", "--give-up", "0.3")
    with container.accept() as peer:
        peer.ready()
        container.listener.close()
    assert container.ends() == 1
    last = container.said().splitlines()[-1]
    assert last.startswith(
        f"topsail: no connection to the sidecar at 127.0.0.1:{last.split(':')[2].split()[0]} for 0.3 s"
    )
    assert last.endswith("is it still running?")


def test_a_refusal_is_told(start):
    container = start("Many", "--give-up", "0.2")
    with container.accept() as peer:
        peer.expect(Kind.HELLO)
        peer.send(Kind.BYE, b"\x0b\0wrong token")
        assert peer.next() is None
        container.listener.close()
    assert container.ends() == 1
    assert "the sidecar refused this container: wrong token" in container.said()


def test_the_token_file_may_come_late_and_change(start, tmp_path):
    file = tmp_path / "token"
    container = start("Many", TOPSAIL_TOKEN_FILE=str(file))
    container.wait_to_hear("No such file")
    for token in ("one", "two"):
        file.write_text(token)
        with container.accept() as peer:
            assert peer.greet().token == token.encode()


# Bytes that make no sense (test_conversation has more of them).


def test_garbage_is_answered_with_bye_and_a_new_connection(start):
    container = start("Many")
    with container.accept() as peer:
        peer.ready().sock.sendall(b"GET / HTTP/1.1\r\nHost: topsail\r\n\r\n")
        assert peer.reason().startswith("frame size at byte 0: 542393671 bytes are more than")
        assert peer.next() is None
    with container.accept() as peer:
        peer.expect(Kind.HELLO)
        peer.send(Kind.HELLO, b"TPS1" + bytes(40))
        assert peer.reason().startswith("hello magic at byte 0: b'TPS1' is not b'TPS2'")
        assert peer.next() is None
    with container.accept() as peer:
        assert peer.ready().predict([1.0]) == [1.0]


# Processes of the model's own.


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_of_the_models_does_not_serve(tmp_path, method):
    """Though multiprocessing runs the program again in it."""
    with Container(tmp_path, "spawning.py", method, "model") as container, container.accept() as peer:
        assert peer.ready().predict([1.0]) == [0.0]
        assert (tmp_path / "helped").exists()
        container.terminate()
        assert container.ends() == 0


# Health.


def test_an_ill_model_is_not_ready_until_it_is_well(tmp_path):
    with Container(tmp_path, "moody.py") as container, container.accept() as peer:
        peer.ready()
        for name in ("ill", "raise"):
            container.touch(name)
            assert peer.announced().state == State.LOADING
            (container.folder / name).unlink()
            assert peer.announced().state == State.READY
        container.terminate()
        assert container.ends() == 0
