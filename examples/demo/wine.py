"""Which of three growers a wine is from, by 13 chemical measurements: a random forest.

Serve it with `python -m topsail wine:Wine`; `train.py` makes the model.
"""

import os
from pathlib import Path

import joblib
import numpy as np

from topsail import Output

MODELS = Path(os.environ.get("DEMO_MODELS", Path(__file__).parent / "models"))


class Wine:
    input_type = "doubles"
    input_length = 13

    def setup(self):
        self.forest = joblib.load(MODELS / "wine.joblib")
        # One call answers the whole batch. Threads for its hundred small trees would cost more than they win.
        self.forest.n_jobs = 1

    def warmup(self):
        return [
            [14.23, 1.71, 2.43, 15.6, 127.0, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065.0],
            [12.37, 0.94, 1.36, 10.6, 88.0, 1.98, 0.57, 0.28, 0.42, 1.95, 1.05, 1.82, 520.0],
            [12.86, 1.35, 2.32, 18.0, 122.0, 1.51, 1.25, 0.21, 0.94, 4.1, 0.76, 1.29, 630.0],
        ]

    def predict(self, inputs):
        probabilities = self.forest.predict_proba(np.stack(inputs))
        growers = probabilities.argmax(axis=1)
        return [Output(int(g), confidence=float(p[g])) for g, p in zip(growers, probabilities, strict=True)]
