"""The wine example of FLIP-23, live: wines come in all the time, models are trained on more and more of them and published when they
are better, and each result is compared with what the framework itself predicts.

    python3 run.py                          on a Redis that it starts
    python3 run.py --broker kafka --jars FOLDER --models tensorflow,pmml

It needs topsail and, by default, redis-server on the PATH, and what requirements.txt lists; PMML needs Java.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from brokers import BROKERS, started
from train import TRAINERS, Trained
from wines import GROWERS, wines

HERE = Path(__file__).parent
MOST = 100_000  # wines
FIRST = 100  # wines that the first models learn from
PATIENCE = 600  # seconds that the last results may take; at the first time Python packages are fetched
APP = """
[[app]]
name = "{name}"
input_type = "doubles"
output_type = "number"
default_output = "-1"
latency_slo_micros = 200000
"""
CLOSE = 1e-4  # a result and what the framework predicts may differ by so much: one of them calculates with 32 bits


@dataclass
class Version:
    """A published version, and its results."""

    trained: Trained
    learned: int  # wines that it was trained on
    error: float  # on wines that it has not seen
    results: int = 0
    difference: float = 0.0  # the largest one from the framework's own prediction


@dataclass
class World:
    broker: object
    models: list[str]
    measured: np.ndarray  # of the wines that come in
    enough: threading.Event = field(default_factory=threading.Event)  # no more wines and models
    ended: threading.Event = field(default_factory=threading.Event)
    sent: int = 0
    versions: dict[tuple[str, str], Version] = field(default_factory=dict)
    results: dict[str, set[int]] = field(default_factory=dict)  # the wines that each app has answered
    failures: list[str] = field(default_factory=list)


def provide_data(world, rate):
    """Sends a wine every 1/rate seconds."""
    begin = time.monotonic()
    for i, measured in enumerate(world.measured):
        if world.enough.wait(max(0, begin + i / rate - time.monotonic())):
            return
        world.sent = i + 1
        world.broker.send("wine.records", GROWERS[i % len(GROWERS)], {"uuid": str(i), "input": measured.tolist()})


def provide_models(world, every):
    """Trains models every so many seconds, each time on twice as many wines, and publishes those that are better."""
    known, unseen = wines(50 * FIRST), wines(1000, seed=5)
    for learned in (FIRST * 2**step for step in range(6)):
        begin = time.monotonic()
        for model in world.models:
            trained = TRAINERS[model](*(column[:learned] for column in known))
            if world.enough.is_set():
                return
            publish(world, model, trained, learned, trained.error(*unseen))
        if world.enough.wait(max(0, begin + every - time.monotonic())):
            return


def publish(world, model, trained, learned, error):
    """Sends a model that is better than those before."""
    before = [v.error for (name, _), v in world.versions.items() if name == model]
    if before and error >= min(before):
        print(f"{model}: no better with {learned} wines: off by {error:.3f}, and {min(before):.3f} before", flush=True)
        return
    number = str(len(before) + 1)
    world.versions[model, number] = Version(trained, learned, error)
    print(f"{model} {number}: published, trained on {learned} wines, off by {error:.3f} on others", flush=True)
    world.broker.send("wine.updates", model, trained.update(model, number))


def read_results(world):
    """Compares each result with the framework's own prediction."""
    for result, _ in world.broker.read("wine.results", world.ended):
        app, i = result["app"], int(result["uuid"])
        if result["default"] or i in world.results.setdefault(app, set()):
            world.failures.append(f"wine {i} of {app}: {result}")
            continue
        world.results[app].add(i)
        version = world.versions[app, result["version"]]
        own = float(version.trained.predict(world.measured[i : i + 1])[0])
        version.results += 1
        version.difference = max(version.difference, abs(result["output"] - own))


def read_acknowledgements(world):
    for said, _ in world.broker.read("wine.deployed", world.ended):
        print(f"{said['model']} {said['version']}: {said['outcome']}", flush=True)


def read_failures(world, stream):
    for _, headers in world.broker.read(stream, world.ended):
        world.failures.append(f"{stream}: {headers['topsail-reason']}")


def watch(world, seconds, topsail):
    """Says every five seconds how it is going. After so many, no more wines come, and each gets its results."""
    begin = time.monotonic()
    while not world.enough.is_set() or any(len(world.results.get(app, ())) < world.sent for app in world.models):
        time.sleep(1)
        passed = round(time.monotonic() - begin)
        if passed % 5 == 0:
            counts = ", ".join(f"{len(world.results.get(app, ()))} of {app}" for app in world.models)
            print(f"{passed:4} s: {world.sent} wines, results: {counts}", flush=True)
        if topsail.poll() is not None or world.failures:
            return
        if passed >= seconds and all(world.results.get(app) for app in world.models):
            world.enough.set()
        if passed >= seconds + PATIENCE:
            world.failures.append(f"not all results came within {passed} s")


def table(world):
    print(f"\n{'model':12} {'version':>7} {'trained on':>10} {'off by':>7} {'results':>8} {'differs from the framework by':>30}")
    for (model, number), v in sorted(world.versions.items()):
        print(f"{model:12} {number:>7} {v.learned:>10} {v.error:>7.3f} {v.results:>8} {v.difference:>30.1e}")


def serve(folder, models, broker, address):
    """Starts Topsail with an app for each kind of model."""
    text = HERE.joinpath("live.toml").read_text().replace("APPS", ", ".join(models)).replace("BROKER", broker).replace("ADDRESS", address)
    text += "".join(APP.format(name=name) for name in models)
    config = folder / "topsail.toml"
    config.write_text(text)
    with Path(folder, "topsail.log").open("w") as log:
        return subprocess.Popen(["topsail", "local", "--config", config, "--data-dir", folder / "data"], stdout=log, stderr=log)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--broker", choices=BROKERS, default="redis")
    ask.add_argument("--address", help="of a broker that is there, without these streams; by default one is started")
    ask.add_argument("--jars", help="the folder of Kafka's jars, to start one")
    ask.add_argument("--models", default="tensorflow", help="between commas: tensorflow, pmml")
    ask.add_argument("--seconds", type=float, default=120, help="how long wines come")
    ask.add_argument("--rate", type=float, default=20, help="wines a second")
    ask.add_argument("--every", type=float, default=20, help="seconds from one training to the next")
    said = ask.parse_args()
    models = said.models.split(",")
    if said.broker == "kafka" and not (said.address or said.jars):
        ask.error("--broker kafka needs the --address of one, or --jars to start one")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="topsail-wine-")))
        more = [said.jars] if said.broker == "kafka" else []
        address = said.address or stack.enter_context(started(said.broker, folder / "broker", *more))
        world = World(BROKERS[said.broker](address), models, wines(MOST, seed=7)[0])
        topsail = stack.enter_context(serve(folder, models, said.broker, address))
        stack.callback(topsail.send_signal, signal.SIGINT)
        stack.callback(world.ended.set)
        stack.callback(world.enough.set)
        print(f"{said.broker} at {address}; the web UI is http://127.0.0.1:1338/ui/streams. Stop with Ctrl-C.", flush=True)
        for work, *more in [
            (provide_data, said.rate),
            (provide_models, said.every),
            (read_results,),
            (read_acknowledgements,),
            (read_failures, "wine.dead"),
            (read_failures, "wine.refused"),
        ]:
            threading.Thread(target=guarded, args=(work, world, *more), daemon=True).start()
        watch(world, said.seconds, topsail)
        table(world)
        return verdict(world, topsail, folder)


def guarded(work, world, *more):
    """Has what goes wrong in a thread end the run."""
    try:
        work(world, *more)
    except Exception as e:
        world.failures.append(f"{work.__name__}: {e!r}")


def verdict(world, topsail, folder):
    """Says what went wrong; nothing, and the example is as it should be."""
    far = [f"{model} {number} differs from the framework" for (model, number), v in world.versions.items() if v.difference > CLOSE]
    if topsail.poll() is not None:
        print(Path(folder, "topsail.log").read_text()[-4000:])
        world.failures.append("topsail has ended; its log is above")
    for failure in [*world.failures[:5], *far]:
        print("wrong:", failure)
    return 1 if world.failures or far else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
