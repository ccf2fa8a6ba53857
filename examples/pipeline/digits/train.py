"""Makes the models of the pipeline: `python train.py [folder]`. The data ship inside of scikit-learn."""

import sys
from pathlib import Path

import joblib
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split


def split():
    """Pictures to learn from, pictures that are held out, and the digits of both."""
    data = load_digits()
    return train_test_split(data.data, data.target, test_size=0.25, stratify=data.target, random_state=1)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "models"
    folder.mkdir(parents=True, exist_ok=True)
    x, x_held, y, y_held = split()
    embed = PCA(n_components=24, random_state=1).fit(x)
    classify = LogisticRegression(max_iter=1000).fit(embed.transform(x), y)
    joblib.dump(embed, folder / "embed.joblib")
    joblib.dump(classify, folder / "classify.joblib")
    print(f"{classify.score(embed.transform(x_held), y_held):.1%} of the held-out pictures are right")


if __name__ == "__main__":
    main()
