"""A chat with a transformer that has read Python's manual, and goes on from what you say in its style.

The first start trains it, for about 90 seconds, and keeps what it learned in chat.npz.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import topsail

from transformer import Adam, Transformer

SECONDS = 90
KEPT = Path(__file__).with_name("chat.npz")


def train(model: Transformer, seconds: float) -> None:
    """Reads parts of the manual at random, and says once in five seconds how it goes."""
    text = np.frombuffer("\n\n".join(topics.values()).encode(), np.uint8).astype(np.int64)
    random, adam = np.random.default_rng(0), Adam(model.weights, rate=3e-3)
    began, said, steps = time.monotonic(), 0.0, 0
    while (passed := time.monotonic() - began) < seconds:
        starts = random.integers(0, len(text) - model.length - 1, size=16)
        loss, grads = model.learn(text[starts[:, None] + np.arange(model.length + 1)])
        adam.step(grads, share=max(0.05, 1 - passed / seconds))
        steps += 1
        if passed - said >= 5:
            said = passed
            bits = loss / np.log(2)
            print(f"training: {passed:.0f} of {seconds:.0f} s, {steps} steps, {bits:.2f} bits a byte", file=sys.stderr)


class Chat:
    def setup(self) -> None:
        self.model = Transformer()
        if KEPT.exists():
            with np.load(KEPT) as kept:
                self.model.weights = dict(kept)
            return
        train(self.model, SECONDS)
        np.savez(KEPT, **self.model.weights)

    def predict(self, messages, max_tokens=200, temperature=0.5, seed=None):
        said = "\n\n".join(str(m.get("content") or "") for m in messages if isinstance(m, dict))
        written = self.model.write(said.encode(), temperature or 0, np.random.default_rng(seed))
        for _, byte in zip(range(int(max_tokens)), written, strict=False):
            yield chr(byte) if byte < 128 else ""


if __name__ == "__main__":
    topsail.serve_chat(Chat)
