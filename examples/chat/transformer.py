"""A small transformer over bytes, in NumPy: enough to learn how a text is spelled and laid out, in a minute.

Each function of the network returns its output and a function that takes the gradient of the output back to those of
its inputs and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]
BYTES = 256


class Transformer:
    """`length` is how many bytes it looks back, `width` the size of its vectors, which `heads` divides."""

    def __init__(self, length: int = 96, width: int = 96, layers: int = 2, heads: int = 4, seed: int = 0) -> None:
        self.length, self.layers, self.heads = length, layers, heads
        random = np.random.default_rng(seed)

        def matrix(rows: int, columns: int, scale: float = 1.0) -> np.ndarray:
            return (random.normal(size=(rows, columns)) * scale / np.sqrt(rows)).astype(np.float32)

        self.weights: Weights = {"bytes": matrix(BYTES, width, 3.0), "places": matrix(length, width, 0.5)}
        for i in range(layers):
            self.weights |= {
                f"{i}.look": np.ones(width, np.float32),
                f"{i}.qkv": matrix(width, 3 * width),
                f"{i}.join": matrix(width, width, 0.5),
                f"{i}.think": np.ones(width, np.float32),
                f"{i}.wide": matrix(width, 4 * width),
                f"{i}.narrow": matrix(4 * width, width, 0.5),
            }
        self.weights["last"] = np.ones(width, np.float32)

    def learn(self, text: np.ndarray) -> tuple[float, Weights]:
        """The mean loss in nats for each byte of a batch of texts, one longer than what is looked at, and its
        gradients."""
        x, wanted = text[:, :-1], text[:, 1:]
        logits, back = self._run(x)
        logits -= logits.max(-1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(-1, keepdims=True)
        rows, columns = np.indices(wanted.shape)
        loss = float(-np.log(chances[rows, columns, wanted] + 1e-12).mean())
        chances[rows, columns, wanted] -= 1
        return loss, back(chances / wanted.size)

    def write(self, text: bytes, temperature: float = 0.7, random: np.random.Generator | None = None) -> Iterator[int]:
        """The bytes that follow a text, without end."""
        random = random or np.random.default_rng()
        seen = list(text)[-self.length :] or [ord("\n")]
        while True:
            logits, _ = self._run(np.array([seen]))
            last = logits[0, -1] / max(temperature, 1e-3)
            chances = np.exp(last - last.max())
            chosen = int(random.choice(BYTES, p=chances / chances.sum()))
            yield chosen
            seen = [*seen, chosen][-self.length :]

    def _run(self, x: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], Weights]]:
        w, backs = self.weights, []
        h = w["bytes"][x] + w["places"][: x.shape[1]]
        for i in range(self.layers):
            h, back = _layer(
                h, {k: w[f"{i}.{k}"] for k in ("look", "qkv", "join", "think", "wide", "narrow")}, self.heads
            )
            backs.append(back)
        h, back_norm = _norm(h, w["last"])
        logits, back_out = _linear(h, w["bytes"].T)

        def back(d: np.ndarray) -> Weights:
            d, dout = back_out(d)
            d, dlast = back_norm(d)
            grads = {"last": dlast, "places": np.zeros_like(w["places"]), "bytes": dout.T.copy()}
            for i, layer in reversed(list(enumerate(backs))):
                d, of_layer = layer(d)
                grads |= {f"{i}.{k}": g for k, g in of_layer.items()}
            grads["places"][: x.shape[1]] = d.sum(0)
            np.add.at(grads["bytes"], x, d)
            return grads

        return logits, back


class Adam:
    """Steps down the gradients, each weight at a rate of its own (Kingma and Ba, 2015)."""

    def __init__(self, weights: Weights, rate: float) -> None:
        self._weights, self._rate, self._steps = weights, rate, 0
        self._mean = {k: np.zeros_like(v) for k, v in weights.items()}
        self._square = {k: np.zeros_like(v) for k, v in weights.items()}

    def step(self, grads: Weights, share: float = 1.0) -> None:
        """`share` is how much of the rate is taken."""
        self._steps += 1
        for k, g in grads.items():
            self._mean[k] += 0.1 * (g - self._mean[k])
            self._square[k] += 0.01 * (g * g - self._square[k])
            mean, square = self._mean[k] / (1 - 0.9**self._steps), self._square[k] / (1 - 0.99**self._steps)
            self._weights[k] -= share * self._rate * mean / (np.sqrt(square) + 1e-8)


def _layer(h: np.ndarray, w: Weights, heads: int) -> tuple[np.ndarray, Callable[..., Any]]:
    """Each place looks at those before it, and then thinks by itself."""
    n, back_look = _norm(h, w["look"])
    qkv, back_qkv = _linear(n, w["qkv"])
    seen, back_attend = _attend(qkv, heads)
    joined, back_join = _linear(seen, w["join"])
    h1 = h + joined
    n, back_think = _norm(h1, w["think"])
    wide, back_wide = _linear(n, w["wide"])
    active = np.maximum(wide, 0)
    narrow, back_narrow = _linear(active, w["narrow"])

    def back(d: np.ndarray) -> tuple[np.ndarray, Weights]:
        g: Weights = {}
        d1, g["narrow"] = back_narrow(d)
        d1, g["wide"] = back_wide(d1 * (wide > 0))
        d1, g["think"] = back_think(d1)
        d = d + d1
        d1, g["join"] = back_join(d)
        d1, g["qkv"] = back_qkv(back_attend(d1))
        d1, g["look"] = back_look(d1)
        return d + d1, g

    return h1 + narrow, back


def _attend(qkv: np.ndarray, heads: int) -> tuple[np.ndarray, Callable[..., Any]]:
    batch, length, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    q, k, v = qkv.reshape(batch, length, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
    scale = np.float32(1 / np.sqrt(width // heads))
    scores = q @ k.swapaxes(-1, -2) * scale
    scores = np.where(np.tri(length, dtype=bool), scores, np.float32(-1e9))
    scores -= scores.max(-1, keepdims=True)
    share = np.exp(scores)
    share /= share.sum(-1, keepdims=True)

    def back(d: np.ndarray) -> np.ndarray:
        d = d.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
        dshare = d @ v.swapaxes(-1, -2)
        dscores = share * (dshare - (dshare * share).sum(-1, keepdims=True)) * scale
        each = np.stack([dscores @ k, dscores.swapaxes(-1, -2) @ q, share.swapaxes(-1, -2) @ d])
        return each.transpose(1, 3, 0, 2, 4).reshape(qkv.shape)

    return (share @ v).transpose(0, 2, 1, 3).reshape(batch, length, width), back


def _norm(x: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, Callable[..., Any]]:
    """Scales each vector to the same length (Zhang and Sennrich, 2019)."""
    by = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6))
    unit = x * by

    def back(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dunit = d * gain
        return by * (dunit - unit * (dunit * unit).mean(-1, keepdims=True)), (d * unit).sum((0, 1))

    return unit * gain, back


def _linear(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, Callable[..., Any]]:
    def back(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return d @ w.T, x.reshape(-1, x.shape[-1]).T @ d.reshape(-1, d.shape[-1])

    return x @ w, back
