"""Pipelines as real processes: a supervisor, its workers, and a sidecar of plain sockets."""

import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from bundles import source
from coordinator import Coordinator
from sidecar import HERE, PATIENCE, Container, environment

from topsail.container.input_type import DOUBLES, STRINGS
from topsail.container.pipeline import program
from topsail.container.pipeline.lines import Lines
from topsail.container.pipeline.stage import Stage
from topsail.container.pipeline.supervisor import StageFailed, Supervisor
from topsail.protocol.constants import Kind, State, Status

# Processes start in half the time without numpy; what travels between stages is tested elsewhere.
QUICK = {"PYTHONPATH": os.pathsep.join((str(HERE / "without_numpy"), str(HERE.parent / "src")))}


@pytest.fixture
def serve(tmp_path):
    """Starts pipelines.py as a program; it and what it has started is gone when the test is over."""
    started = []

    def serve(name, **environ):
        started.append(Container(tmp_path, "pipelines.py", name, **QUICK | {"TEST_GRACE": "600"} | environ))
        return started[-1]

    yield serve
    for container in started:
        pids = workers(container)
        container.__exit__()
        for pid in pids:
            gone(pid)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One pipeline for all tests that leave it alive."""
    folder = tmp_path_factory.mktemp("shared")
    with (
        Container(folder, "pipelines.py", "scale_shift", **QUICK) as container,
        Coordinator(container.listener) as sidecar,
    ):
        sidecar.ready(3)
        yield container, sidecar


def workers(container):
    """The processes whose parent is the container's."""
    found = []
    for entry in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            fields = Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == container.process.pid:
                found.append(int(entry))
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(*pids):
    """Until none of the processes is there."""
    eventually(lambda: not any(map(alive, pids)))


def eventually(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


def number(query):
    entry = query.result(PATIENCE)
    assert entry.status == Status.OK, entry.message
    [value] = entry.values
    return struct.unpack("<d", value.data)[0]


# Serving.


def test_every_query_gets_its_own_answer(shared):
    _, sidecar = shared
    queries = [sidecar.ask([float(i)]) for i in range(2000)]
    assert [number(q) for q in queries] == [i * 2 + 3 for i in range(2000)]
    assert all(w.answered for w in sidecar.workers)  # both workers of the first stage had some


def test_all_workers_announce_the_same_pipeline(shared):
    _, sidecar = shared  # which compares them
    assert sidecar.stages == [
        {"name": "Scale", "workers": 2, "idempotent": True},
        {"name": "Shift", "workers": 1, "batch": {"strategy": "fixed", "max_size": 8}},
    ]
    assert sorted(w.stage for w in sidecar.ready(3)) == ["Scale", "Scale", "Shift"]
    assert {w.peer.hello.features & 2 for w in sidecar.workers} == {2}
    assert {w.peer.hello.name for w in sidecar.workers} == {"replica-1"}


def test_an_error_is_its_own_querys_alone(shared):
    _, sidecar = shared
    queries = [sidecar.ask("text" if i % 5 == 0 else [float(i)], STRINGS if i % 5 == 0 else DOUBLES) for i in range(50)]
    for i, query in enumerate(queries):
        if i % 5:
            assert number(query) == i * 2 + 3
        else:
            assert query.result(PATIENCE).status == Status.BAD_INPUT


def test_pairing_with_errors_drops_and_deaths(serve):
    container = serve("graph")
    rng = random.Random(3)
    queries = []
    with Coordinator(container.listener) as sidecar:
        for _ in range(8):
            sidecar.ready(7)  # again: a stage is given up whose worker ends three times before it has loaded
            answers, gone_before = sidecar.answers, sidecar.gone
            queries += [(i, sidecar.ask([float(i)])) for i in range(len(queries), len(queries) + 400)]
            eventually(lambda least=answers + 200: sidecar.answers > least)
            os.kill(rng.choice(workers(container)), signal.SIGKILL)
            eventually(lambda before=gone_before: sidecar.gone > before)
        ends = [(i, q.result(PATIENCE)) for i, q in queries]
        container.wait_to_hear("killed by signal SIGKILL")
    counts = {status: 0 for status in Status}
    for i, entry in ends:
        counts[Status(entry.status)] += 1
        if entry.status == Status.OK:
            assert i % 3 == 0
            assert bytes(entry.values[0].data) == f"number {i}".encode()
        elif entry.status == Status.DROPPED:
            assert i % 3 == 1
            assert entry.message == f"{i} is dropped"
        elif entry.status == Status.MODEL_ERROR:
            assert i % 3 == 2
            assert entry.message == f"ValueError: {i} is bad"
        else:  # its worker died, and the one after it, too
            assert entry.status == Status.CONTAINER_FAILED
    assert min(counts[Status.OK], counts[Status.DROPPED], counts[Status.MODEL_ERROR]) > 500


def test_workers_are_pinned(serve):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    container = serve("pinned", TEST_CPUS=",".join(map(str, cpus)))
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(2)
        found = {int(number(sidecar.ask([1.0]))) for _ in range(200)}
    assert found <= set(cpus)
    pinned = {tuple(os.sched_getaffinity(pid)) for pid in workers(container)}
    assert pinned == {(cpu,) for cpu in cpus}


def test_workers_have_several_cpus(serve):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    container = serve("pinned", TEST_CPUS=",".join(map(str, cpus)), TEST_CPUS_EACH=str(len(cpus)))
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(2)
        assert {tuple(sorted(os.sched_getaffinity(pid))) for pid in workers(container)} == {tuple(cpus)}


def test_a_cpu_that_is_not_there(serve):
    container = serve("pinned", TEST_CPUS="0,4711")
    assert container.ends() == 1
    assert (
        container.said()
        .splitlines()[-1]
        .startswith("topsail: stage 'Where': there is no CPU 4711 for this process; it may use ")
    )


# What workers write.


def test_lines_have_the_name_of_their_worker(serve, tmp_path):
    container = serve("talking")
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(1)
        number(sidecar.ask([1.0]))
        container.terminate()
        assert container.ends() == 0
    lines = container.said().splitlines()
    assert "[Talking/0] to stderr" in lines
    assert "[Talking/0] to stdout" not in lines  # which went to stdout
    assert all(re.match(r"\[Talking/0\] |INFO topsail: ", line) for line in lines)


def test_stdout_stays_stdout_and_lines_are_bounded(tmp_path):
    with Container(tmp_path, "-c", "") as nobody:  # for its listener alone
        process = subprocess.Popen(
            [sys.executable, "pipelines.py", "talking"],
            cwd=HERE,
            env=environment()
            | QUICK
            | {"TOPSAIL_SIDECAR": f"127.0.0.1:{nobody.port}", "TOPSAIL_MODEL": "m", "TOPSAIL_VERSION": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with Coordinator(nobody.listener) as sidecar:
            sidecar.ready(1)
            number(sidecar.ask([1.0]))
            process.terminate()
            out, _ = process.communicate(timeout=PATIENCE)
    assert out.splitlines() == [
        "[Talking/0] to stdout",
        "[Talking/0] " + "x" * 8192 + " [11808 bytes cut]",
        "[Talking/0] no end",
    ]


def test_lines_come_out_whole_however_they_came_in():
    rng = random.Random(4)
    for _ in range(200):
        text = b"".join(
            rng.choice([b"a", b"\n", b"\r\n", b"x" * 5000, b"\xff", b"\r"]) for _ in range(rng.randrange(40))
        )
        out = []
        lines = Lines("[a/0] ", out.append)
        at = 0
        while at < len(text):
            step = rng.choice([1, 3, 4000, 20_000])
            lines.feed(text[at : at + step])
            at += step
        lines.finish()
        expected = text.split(b"\n")
        expected = expected if expected[-1] else expected[:-1]
        assert out == [b"[a/0] " + bounded(line) + b"\n" for line in expected]


def bounded(line):
    kept, cut = line[:8192], len(line) - 8192
    return kept.removesuffix(b"\r") + (b" [%d bytes cut]" % cut if cut > 0 else b"")


# Deaths.


@pytest.mark.parametrize("number_", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_ends_is_started_again(serve, number_):
    container = serve("scale_shift")
    with Coordinator(container.listener) as sidecar:
        [before] = [w for w in sidecar.ready(3) if w.stage == "Shift"]
        [shift] = [pid for pid in workers(container) if environ(pid)["TOPSAIL_STAGE"] == "Shift"]
        os.kill(shift, number_)
        eventually(lambda: before.left)
        how = "killed by signal SIGKILL" if number_ == signal.SIGKILL else "exit status 0"
        container.wait_to_hear(f"WARNING topsail: worker Shift/0 ended: {how}; it starts again in ")
        sidecar.ready(3)
        assert number(sidecar.ask([1.0])) == 5.0


def environ(pid):
    """With what a process was started."""
    text = Path(f"/proc/{pid}/environ").read_text()
    return dict(line.partition("=")[::2] for line in text.split("\0") if line)


def test_what_a_worker_has_started_ends_with_it(serve):
    container = serve("helped")
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(1)
        [helper] = [int(f.name.removeprefix("helper")) for f in container.folder.glob("helper*")]
        os.kill(int(number(sidecar.ask([1.0]))), signal.SIGKILL)
        gone(helper)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_of_a_workers_is_no_supervisor(tmp_path, method):
    """Though multiprocessing runs the program again in it."""
    with (
        Container(tmp_path, "spawning.py", method, "pipeline", **QUICK) as container,
        Coordinator(container.listener) as sidecar,
    ):
        sidecar.ready(1)
        assert number(sidecar.ask([1.0])) == 0.0
        assert (tmp_path / "helped").exists()
        container.terminate()
        assert container.ends() == 0


def test_no_worker_outlives_its_supervisor(serve):
    container = serve("scale_shift")
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(3)
        pids = workers(container)
        assert len(pids) == 3
        container.process.kill()
        container.process.wait()
        gone(*pids)


def test_no_worker_outlives_a_supervisor_that_ends_while_it_starts(serve):
    for _ in range(5):
        container = serve("scale_shift")
        eventually(lambda c=container: workers(c))
        pids = workers(container)
        container.process.kill()
        container.process.wait()
        gone(*pids)


def test_the_tether_alone_ends_a_worker(tmp_path):
    """Where there is no parent-death signal."""
    ours, theirs = socket.socketpair()
    with ours, theirs, Container(tmp_path, "-c", "") as nobody:
        process = subprocess.Popen(
            [sys.executable, "pipelines.py", "gated"],
            cwd=HERE,
            env=environment()
            | QUICK
            | {
                "TOPSAIL_SIDECAR": f"127.0.0.1:{nobody.port}",
                "TOPSAIL_MODEL": "m",
                "TOPSAIL_VERSION": "1",
                "TOPSAIL_STAGE": "Gated",
                "TOPSAIL_WORKER": "0",
                "TOPSAIL_PIPELINE": GATED,
                "TOPSAIL_CONTROL": str(theirs.fileno()),
            },
            pass_fds=[theirs.fileno()],
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        ours.settimeout(PATIENCE)
        assert ours.recv(100) == b"ready\n"
        ours.close()
        assert process.wait(PATIENCE) == 1


GATED = '[{"name":"Gated","workers":1},{"name":"GatedShift","workers":1},{"name":"Last","workers":1}]'


# Loading.


def test_a_stage_that_cannot_be_loaded(serve):
    container = serve("broken")
    with Coordinator(container.listener):
        assert container.ends() == 1
    said = container.said()
    assert said.count("[Broken/0] OSError: the weights are not there") == 3
    assert said.splitlines()[-1] == (
        "topsail: stage Broken failed to load 3 times in a row: exit status 1 (OSError: the weights are not there)"
    )
    assert "Traceback" in said


def test_why_it_cannot_be_loaded_is_told_to_the_sidecar(serve):
    container = serve("broken", TEST_SETUP="connected")
    with Coordinator(container.listener) as sidecar:
        eventually(lambda: [w for w in sidecar.workers if w.stage == "Broken"])
        container.touch("connected")  # for which a worker that cannot be loaded does not wait for long
        eventually(lambda: "OSError: the weights are not there" in [w.reason for w in sidecar.workers])


def test_a_program_that_makes_another_pipeline_each_time(serve):
    container = serve("changing")
    assert container.ends() == 1
    assert "the pipeline of this worker is not the one of its supervisor" in container.said()


def test_a_program_that_cannot_be_started(monkeypatch):
    monkeypatch.setattr(program, "FOLDER", "/nowhere")
    with pytest.raises(
        StageFailed, match="stage a failed to load 3 times in a row: it cannot be started: .*'/nowhere'"
    ):
        Supervisor([Stage("a", ("input",), len)], os.environ).run()


def test_a_program_that_ends_without_serving(tmp_path):
    """As one does that serves only the first time that it is run."""
    (tmp_path / "once.py").write_text(
        "import os, pathlib, sys, topsail\n"
        "if pathlib.Path('ran').exists(): sys.exit()\n"
        "pathlib.Path('ran').touch()\n"
        "p = topsail.Pipeline()\n"
        "p.add(lambda xs: xs, name='only')\n"
        "topsail.serve(p)\n"
    )
    with Container(tmp_path, "-c", f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_path('once.py')") as once:
        assert once.ends() == 1
        assert once.said().splitlines()[-1] == (
            "topsail: stage only failed to load 3 times in a row: its program ended and did not serve it"
        )


# Stopping.


def test_a_stop_lets_what_is_on_its_way_finish(serve):
    container = serve("gated")
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(3)
        first = sidecar.ask([-1.0])
        container.wait_for("in-1")
        container.terminate()
        eventually(lambda: any(w.draining for w in sidecar.workers))
        assert [w.stage for w in sidecar.workers if w.draining] == ["Gated"]
        container.touch("out-1")
        assert number(first) == 5.0  # by two stages that were left to finish
        assert container.ends() == 0
    assert [w.reason for w in sidecar.workers] == ["stopped"] * 3
    assert len(list(container.folder.glob("teardown*"))) == 3
    assert "ended" not in container.said()


def test_a_second_signal_does_not_wait(serve):
    container = serve("deaf")
    with Coordinator(container.listener) as sidecar:
        [worker] = sidecar.ready(1)
        sidecar.ask([1.0])
        container.wait_for("deaf")
        [pid] = workers(container)
        container.terminate()
        eventually(lambda: worker.draining)
        container.terminate()
        assert container.ends() == 0  # long before its grace is over
        assert not alive(pid)
    assert "worker Deaf/0 ended: killed by signal SIGKILL" in container.said()


def test_a_stop_is_bounded(serve):
    container = serve("deaf", TEST_GRACE="0.3")
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(1)
        sidecar.ask([1.0])
        container.wait_for("deaf")
        [pid] = workers(container)
        container.terminate()
        assert container.ends() == 0
        assert not alive(pid)
    assert "worker Deaf/0 ended: killed by signal SIGKILL" in container.said()


def test_a_stop_while_loading(serve):
    container = serve("loading")
    with Coordinator(container.listener) as sidecar:
        sidecar.ready(1)
        container.wait_for("loading")
        container.terminate()
        assert container.ends() == 0
    assert "ended" not in container.said()


def test_without_a_sidecar_it_ends_with_the_sentence_of_a_plain_container(serve):
    container = serve("scale_shift", TEST_GIVE_UP="0.3")
    port = container.port
    container.listener.close()
    assert container.ends() == 1
    last = container.said().splitlines()[-1]
    assert last.startswith(f"topsail: no connection to the sidecar at 127.0.0.1:{port} for 0.3 s (")
    assert last.endswith("is it still running?")


# One worker's session.


def test_a_stage_announces_the_querys_type_and_its_pipeline(serve):
    container = serve("gated")
    seen = {}
    with ExitStack() as peers:  # a worker whose connection ends would come again
        for _ in range(3):
            peer = peers.enter_context(container.accept())
            peer.greet(features=2)
            entry = peer.announced()
            seen[entry.stage] = entry
    assert seen.keys() == {"Gated", "GatedShift", "Last"}
    for entry in seen.values():
        assert (entry.id, entry.model, entry.version, entry.input_type) == (1, "test", "1", 4)
        assert entry.state in (State.LOADING, State.READY)
        assert entry.pipeline == GATED.encode()


def test_a_sidecar_that_knows_no_pipelines_is_refused(serve):
    container = serve("gated", TEST_GIVE_UP="0.2")
    with container.accept() as peer:
        peer.greet()
        assert peer.reason() == "this container is a stage of a pipeline"
    container.listener.close()
    assert container.ends() == 1
    assert "the sidecar is of a version of Topsail that knows no pipelines" in container.said()


def test_drops_need_a_sidecar_that_knows_them(tmp_path):
    for features, status, message in ((2, Status.DROPPED, "dull"), (0, Status.MODEL_ERROR, "Drop: dull")):
        with Container(tmp_path, "-m", "topsail", "pipelines:dull") as container, container.accept() as peer:
            peer.greet(features=features)
            peer.wait_ready()
            assert peer.predict([1.0]) == [(status, message)]


# Pipelines from outside of the code.


STAGES = (
    '[{"name":"One","code":"pipelines:Scale","workers":2},{"name":"Two","code":"pipelines:Shift",'
    '"batch":{"strategy":"aimd","max_size":4,"delay_micros":1000}}]'
)


def test_a_pipeline_of_the_environment(tmp_path):
    with (
        Container(tmp_path, "-m", "topsail", "pipeline", **QUICK, TOPSAIL_STAGES=STAGES) as container,
        Coordinator(container.listener) as sidecar,
    ):
        sidecar.ready(3)
        assert number(sidecar.ask([2.0])) == 7.0
        assert [(s["name"], s["code"]) for s in sidecar.stages] == [
            ("One", "pipelines:Scale"),
            ("Two", "pipelines:Shift"),
        ]
        container.terminate()
        assert container.ends() == 0


def test_a_pipeline_of_a_bundle(tmp_path):
    folder = source(tmp_path, "from pipelines import Scale, Shift", "model:Scale")
    stages = '[{"name":"One","code":"model:Scale"},{"name":"Two","code":"model:Shift"}]'
    path = os.pathsep.join((QUICK["PYTHONPATH"], str(HERE)))
    with (
        Container(tmp_path, "-m", "topsail.runtime", str(folder), TOPSAIL_STAGES=stages, PYTHONPATH=path) as container,
        Coordinator(container.listener) as sidecar,
    ):
        sidecar.ready(2)
        assert number(sidecar.ask([2.0])) == 7.0


def test_a_pipeline_of_a_module(tmp_path):
    with (
        Container(tmp_path, "-m", "topsail", "pipeline", "pipelines:MADE", **QUICK) as container,
        Coordinator(container.listener) as sidecar,
    ):
        sidecar.ready(3)
        assert number(sidecar.ask([2.0])) == 7.0


def test_the_environment_overrides_the_program(serve):
    container = serve("scale_shift", TOPSAIL_STAGES='[{"name":"Scale","workers":1},{"name":"Shift","workers":3}]')
    with Coordinator(container.listener) as sidecar:
        assert sorted(w.stage for w in sidecar.ready(4)) == ["Scale", "Shift", "Shift", "Shift"]
        assert number(sidecar.ask([2.0])) == 7.0


def test_a_stage_that_the_program_does_not_have(serve):
    container = serve("scale_shift", TOPSAIL_STAGES='[{"name":"Rank"}]')
    assert container.ends() == 1
    assert container.said().splitlines()[-1] == (
        "topsail: TOPSAIL_STAGES makes no sense: it names the stage 'Rank', and the program has Scale, Shift"
    )


def test_frames_of_a_worker_are_those_of_a_container(serve):
    """Pings are answered, feedback is taken silently, unknown models are refused."""
    container = serve("helped")
    with container.accept() as peer:
        peer.greet(features=2)
        peer.wait_ready()
        peer.send(Kind.PING, struct.pack("<Q", 5))
        assert struct.unpack("<Q", peer.expect(Kind.PONG)) == (5,)
        peer.teach(([1.0], 2.0))
        assert peer.predict([1.0], model=2) == [(Status.UNKNOWN_MODEL, "this container announced no model 2")]
        [answer] = peer.predict([1.0])
        assert answer in workers(container)
