"""Trains the models of the demo: `python train.py [folder]`.

The data ship inside of scikit-learn, so nothing is downloaded. A model that is up to date is left alone.
"""

import hashlib
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "models"
    folder.mkdir(parents=True, exist_ok=True)
    for name, train in {"wine": train_wine, "digits": train_digits}.items():
        if known := up_to_date(folder, name):
            say(f"{name}: up to date, {known['accuracy']:.1%} of the held-out examples are right\n")
            continue
        say(f"{name}: training ... ")
        began = time.monotonic()
        model, accuracy = train()
        save(folder, name, model, accuracy)
        say(f"{accuracy:.1%} of the held-out examples are right ({time.monotonic() - began:.1f} s)\n")


# scikit-learn takes a second to import, so only what trains imports it.


def train_wine():
    from sklearn.datasets import load_wine
    from sklearn.ensemble import RandomForestClassifier

    return fit(RandomForestClassifier(n_estimators=100, random_state=1), load_wine())


def train_digits():
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    return fit(SVC(kernel="rbf", gamma=0.001, C=10), load_digits())


def fit(model, data):
    """The model, trained on three quarters of the data, and its accuracy on the rest."""
    from sklearn.model_selection import train_test_split

    split = train_test_split(data.data, data.target, test_size=0.25, stratify=data.target, random_state=1)
    x, x_held, y, y_held = split
    model.fit(x, y)
    return model, model.score(x_held, y_held)


def fingerprint() -> str:
    """What a model depends on: this script, and the versions that must read the file later."""
    python = "{}.{}".format(*sys.version_info[:2])
    parts = (Path(__file__).read_bytes(), version("scikit-learn").encode(), version("numpy").encode(), python.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def up_to_date(folder: Path, name: str) -> dict | None:
    """The notes beside a model, if the model would come out the same again."""
    try:
        notes = json.loads((folder / f"{name}.json").read_text())
    except (OSError, ValueError):
        return None
    same = notes.get("fingerprint") == fingerprint() and (folder / f"{name}.joblib").is_file()
    return notes if same else None


def save(folder: Path, name: str, model, accuracy: float) -> None:
    """The notes come last, so that a training that was interrupted is done again."""
    import joblib

    notes = json.dumps({"fingerprint": fingerprint(), "accuracy": accuracy})
    (folder / f"{name}.json").unlink(missing_ok=True)
    replace(folder / f"{name}.joblib", lambda path: joblib.dump(model, path))
    replace(folder / f"{name}.json", lambda path: path.write_text(notes))


def replace(path: Path, write) -> None:
    """Writes beside the file and renames, so that a container that is loading never sees half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def say(text: str) -> None:
    print(text, end="", flush=True)


if __name__ == "__main__":
    main()
