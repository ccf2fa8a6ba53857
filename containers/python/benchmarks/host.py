"""What a host of many small models takes: to load one, in memory, and to answer while others are loaded and unloaded.

    PYTHONPATH=src:tests python benchmarks/host.py [MODELS]

It needs scikit-learn. One host serves pipelines of a scaler and a logistic regression to a sidecar of plain sockets.
"""

import pickle
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from hosting import Host
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from topsail.protocol import announce, load
from topsail.protocol.constants import Kind, State

X = np.random.default_rng(0).random((200, 8))
QUERY = X[0].tolist()
ASKED = 1500


def main(count: int) -> None:
    model = pickle.dumps(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X.sum(axis=1) > 4))
    with tempfile.TemporaryDirectory() as folder, Host(Path(folder)) as host:
        for i in range(count):
            host.put(f"m{i}", {"model.pkl": model}, "model.pkl", "sklearn", input_type="doubles", input_length=8)
        sidecar = host.accept()
        loading, entries = timed(range(count), lambda i: sidecar.load(f"m{i}", version=str(i)))
        print(f"a model of {len(model)} bytes: the first, with its library, in {loading[0] * 1e3:.0f} ms")
        show("load one more", loading[1:])
        print(f"memory of the process: {sidecar.host.memory / 1e6:.1f} MB with {count} models")
        show("a query", timed(range(ASKED), lambda i: sidecar.predict(entries[i % count], QUERY))[0])
        show("unload", timed(entries[: count // 2], lambda e: sidecar.unload(e.id))[0])
        changes = Changes(sidecar, count // 2)
        show("a query meanwhile", timed(range(ASKED), lambda i: changes.ask(entries[-1]))[0])
        print(f"{changes.loaded} models were loaded and unloaded meanwhile")


class Changes:
    """Has the host load and unload models, one after the other, while it is asked."""

    def __init__(self, sidecar, count):
        self.sidecar, self.count = sidecar, count
        self.loaded = 0
        self.next()

    def next(self):
        self.sidecar.ask_for(f"m{self.loaded % self.count}", version=f"again-{self.loaded}")

    def ask(self, entry):
        peer = self.sidecar.peer
        peer.ask(QUERY, model=entry.id)
        while (f := peer.next()).kind != Kind.REPLY:
            if f.kind != Kind.ANNOUNCE:
                continue
            changed = announce.decode(f.body)[0]
            if changed.state == State.READY:
                self.loaded += 1
                peer.send(Kind.UNLOAD, load.encode_unload(changed.id))
            else:
                self.next()


def timed(things, do):
    took, done = [], []
    for thing in things:
        began = time.perf_counter()
        done.append(do(thing))
        took.append(time.perf_counter() - began)
    return took, done


def show(what, seconds):
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
    print(f"{what}: p50 {p50:.2f} ms, p99 {p99:.2f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
