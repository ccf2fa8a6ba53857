"""Which digit an 8 by 8 picture shows, by its 64 grey values from 0 to 16: a support vector machine.

Serve it with `python -m topsail digits:Digits`; `train.py` makes the model.
"""

import os
from pathlib import Path

import joblib
import numpy as np

MODELS = Path(os.environ.get("DEMO_MODELS", Path(__file__).parent / "models"))


class Digits:
    input_type = "ints"
    input_length = 64

    def setup(self):
        self.svm = joblib.load(MODELS / "digits.joblib")

    def warmup(self):
        zero = "0 0 5 13 9 1 0 0 0 0 13 15 10 15 5 0 0 3 15 2 0 11 8 0 0 4 12 0 0 8 8 0 "
        zero += "0 5 8 0 0 9 8 0 0 4 11 0 1 12 7 0 0 2 14 5 10 12 0 0 0 0 6 13 10 0 0 0"
        return [[int(grey) for grey in zero.split()]]

    def predict(self, inputs):
        return self.svm.predict(np.stack(inputs)).tolist()
