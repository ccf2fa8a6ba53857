"""The transformer of examples/chat learns."""

import itertools
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "chat"))
from transformer import Adam, Transformer  # noqa: E402


def test_its_gradients_are_those_of_its_loss():
    model = Transformer(length=6, width=8, layers=2, heads=2)
    model.weights = {k: v.astype(np.float64) for k, v in model.weights.items()}
    text = np.random.default_rng(1).integers(0, 256, size=(3, 7))
    _, grads = model.learn(text)
    random = np.random.default_rng(2)
    for name, w in model.weights.items():
        for at in random.integers(0, w.size, size=5):
            index = np.unravel_index(at, w.shape)
            before, losses = w[index], []
            for step in (1e-4, -1e-4):
                w[index] = before + step
                losses.append(model.learn(text)[0])
            w[index] = before
            assert grads[name][index] == pytest.approx((losses[0] - losses[1]) / 2e-4, rel=1e-2, abs=1e-5), name


def test_it_learns_a_text_and_writes_it():
    model = Transformer(length=16, width=32, layers=1, heads=2)
    text = np.frombuffer(b"to be or not to be, " * 20, np.uint8).astype(np.int64)
    adam, random = Adam(model.weights, rate=1e-2), np.random.default_rng(0)
    losses = []
    for _ in range(150):
        starts = random.integers(0, len(text) - 17, size=8)
        loss, grads = model.learn(text[starts[:, None] + np.arange(17)])
        adam.step(grads)
        losses.append(loss)
    assert losses[-1] < 0.3 < 2 < losses[0]
    written = bytes(itertools.islice(model.write(b"to be or not ", temperature=0.01), 7))
    assert written == b"to be, "
