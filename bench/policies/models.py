"""Trains the models of the laboratory: `python models.py tables.json`.

Writes what real models say to handwritten digits that they have never seen. Everything is seeded, and the data ship
inside of scikit-learn, so that nothing is downloaded and the same versions write the same tables.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SEEDS = 10
PIXELS = 64
DIGITS = load_digits()
X, X_HELD, Y, Y_HELD = train_test_split(DIGITS.data, DIGITS.target, test_size=0.6, stratify=DIGITS.target, random_state=1)


def main() -> None:
    tables = [five(), specialists()]
    for seed in range(SEEDS):
        tables += [pixels(seed), odd(seed), numbers(seed)]
    for t in tables[:2]:
        print(f"{t['name']}: errors", ", ".join(f"{m['name']} {wrong(m['outputs'], t['labels']):.3f}" for m in t["models"]))
    Path(sys.argv[1]).write_text(json.dumps(tables, separators=(",", ":")))


def five() -> dict:
    """Five models, from good and slow to poor and fast. The best one can go bad."""
    forest = RandomForestClassifier(300, random_state=1).fit(X, Y)
    models = [
        model("forest", forest, ALL, micros=6000),
        model("few-samples", regression().fit(X[:70], Y[:70]), ALL, micros=2000),
        model("16-pixels", *regression_of(16, seed=1), micros=1200),
        model("7-pixels", *regression_of(7, seed=1), micros=800),
        model("6-pixels", *regression_of(6, seed=2), micros=600),
    ]
    models[0]["degraded"] = scrambled(forest)
    return {"inputs": pooled(X_HELD)} | table("five", 0, Y_HELD, models)


def scrambled(trained) -> list:
    """What a model says when its pixels come in a wrong order, the one of some that leaves it nearest to 90 % errors."""
    rng = np.random.default_rng(0)
    said = [listed(trained.predict(X_HELD[:, rng.permutation(PIXELS)])) for _ in range(20)]
    return min(said, key=lambda s: abs(wrong(s, Y_HELD) - 0.9))


def specialists() -> dict:
    """Five experts for two digits each. Of the other digits they have seen two examples each."""
    models = []
    for k in range(5):
        own = np.isin(Y, (2 * k, 2 * k + 1))
        other = np.concatenate([np.flatnonzero((Y == d) & ~own)[:2] for d in range(10)])
        seen = np.concatenate([np.flatnonzero(own), other])
        trained = RandomForestClassifier(100, random_state=k).fit(X[seen], Y[seen])
        models.append(model(f"expert-{2 * k}-{2 * k + 1}", trained, ALL))
    return {"inputs": pooled(X_HELD)} | table("specialists", 0, Y_HELD, models)


def pixels(seed: int) -> dict:
    """Five models of one kind that each see a random 16 of the 64 pixels."""
    models = [model(name, RandomForestClassifier(100, random_state=1).fit(X[:, c], Y), c) for name, c in views(seed)]
    return table("pixels", seed, Y_HELD, models)


def odd(seed: int) -> dict:
    """The same for the question whether the digit is odd: 1 or 0. One of the five was trained the wrong way round."""
    models = []
    for k, (name, c) in enumerate(views(seed)):
        target = (Y + (k == 4)) % 2
        models.append(model(name, RandomForestClassifier(50, random_state=1).fit(X[:, c], target), c))
    return table("odd", seed, Y_HELD % 2, models)


def numbers(seed: int) -> dict:
    """The same for the digit as a number, of which models can be wrong by a little. They see 8 to 24 pixels."""
    rng = np.random.default_rng(seed)
    models = []
    for count in (8, 12, 16, 20, 24):
        c = rng.choice(PIXELS, count, replace=False)
        trained = RandomForestRegressor(50, random_state=1).fit(X[:, c], Y)
        models.append({"name": f"{count:02}-pixels", "micros": 1000, "outputs": np.round(trained.predict(X_HELD[:, c]), 3).tolist()})
    return table("numbers", seed, Y_HELD, models)


ALL = slice(None)


def views(seed: int):
    """Names and pixels of five models."""
    rng = np.random.default_rng(seed)
    return [(f"view-{k + 1}", rng.choice(PIXELS, 16, replace=False)) for k in range(5)]


def regression():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def regression_of(count: int, seed: int):
    columns = np.random.default_rng(seed).choice(PIXELS, count, replace=False)
    return regression().fit(X[:, columns], Y), columns


def model(name: str, trained, columns, micros: int = 1000) -> dict:
    """What a classifier says, how sure it is, and how long it is taken to need."""
    chances = trained.predict_proba(X_HELD[:, columns])
    said = trained.classes_[chances.argmax(axis=1)]
    return {"name": name, "micros": micros, "outputs": listed(said), "confidence": np.round(chances.max(axis=1), 3).tolist()}


def table(name: str, seed: int, labels, models: list) -> dict:
    return {"name": name, "seed": seed, "labels": listed(labels), "models": models}


def pooled(images) -> list:
    """Each image as 16 numbers, the means of squares of four pixels."""
    return images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16).tolist()


def listed(labels) -> list:
    return [int(label) for label in labels]


def wrong(said, labels) -> float:
    """The share of errors."""
    return float(np.mean(np.asarray(said) != np.asarray(labels)))


if __name__ == "__main__":
    main()
