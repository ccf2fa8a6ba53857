"""Invented red wines: the 11 measurements and the quality of each, from a fixed seed.

They have the columns of the well-known data set of red wine quality, and numbers of the same size that hang together in
the same directions: more alcohol, more sulphates and less volatile acidity make a better wine, and alcohol makes it lighter.
They are synthetic: nothing that is found out about them says anything about wine.

`python wines.py 1000` prints 1000 of them as records of a stream, one to a line.
"""

import json
import sys

import numpy as np

COLUMNS = [
    "fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free sulfur dioxide",
    "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
]
GROWERS = ["merlot", "pinot", "malbec", "syrah"]


def wines(count=1600, seed=23):
    """The measurements, a row for each wine, and their qualities."""
    chance = np.random.default_rng(seed)

    def around(mean, spread, least=0.0):
        return np.maximum(chance.normal(mean, spread, count), least)

    volatile, alcohol, sulphates = around(0.53, 0.17, 0.12), around(10.4, 1.05, 8.4), around(0.66, 0.15, 0.33)
    citric = np.clip(0.55 - 0.55 * volatile + chance.normal(0, 0.14, count), 0, 1)
    fixed = np.maximum(6.3 + 7 * citric + chance.normal(0, 1.1, count), 4.6)
    sugar, chlorides, free = around(2.5, 1.1, 0.9), around(0.085, 0.035, 0.012), around(16, 9, 1)
    total = free + around(30, 22, 5)
    density = 0.9967 - 0.0009 * (alcohol - 10.4) + 0.0006 * (fixed - 8.3) + chance.normal(0, 0.0008, count)
    acid = 3.31 - 0.055 * (fixed - 8.3) + chance.normal(0, 0.1, count)
    quality = (
        5.6 + 0.32 * (alcohol - 10.4) - 1.5 * (volatile - 0.53) + 1.3 * (sulphates - 0.66) - 1.8 * (chlorides - 0.085)
        + chance.normal(0, 0.5, count)
    )
    columns = [fixed, volatile, citric, sugar, chlorides, free, total, density, acid, sulphates, alcohol]
    return np.column_stack(columns).round(4), np.clip(np.rint(quality), 3, 8)


def records(count, seed=7):
    """Wines that no model has seen, as records: the input, and its user."""
    for i, measured in enumerate(wines(count, seed)[0]):
        yield {"uuid": f"wine-{i}", "input": measured.tolist(), "key": GROWERS[i % len(GROWERS)]}


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for record in records(count):
        print(json.dumps(record))


if __name__ == "__main__":
    main()
