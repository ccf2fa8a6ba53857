"""Which digit a picture of 8 by 8 pixels shows: decode, embed, classify.

Decoding is Python and takes the longest, so it has two workers; the others are matrices, and take what has come
together. `train.py` makes the models.
"""

import os
from pathlib import Path

import joblib
import numpy as np
import png

import topsail

MODELS = Path(os.environ.get("DIGITS_MODELS", Path(__file__).parent / "models"))
BRIGHTEST = 16.0  # of a pixel, in the data that the models were trained with


class Decode:
    """From a PNG, or 64 bytes from 0 to 255, to 64 numbers from 0 to 16. A blank picture is dropped."""

    input_type = "bytes"

    def warmup(self):
        return [png.write(np.eye(8) * 255)]

    def predict(self, inputs):
        return [self.one(bytes(x)) for x in inputs]

    def one(self, data):
        try:
            pixels = np.frombuffer(data, np.uint8).reshape(8, 8) if len(data) == 64 else png.read(data)
        except ValueError as e:
            return topsail.Error(str(e))
        if pixels.shape != (8, 8):
            return topsail.Error(f"the picture is {pixels.shape[1]} by {pixels.shape[0]} pixels large, and not 8 by 8")
        if not pixels.any():
            return topsail.Drop("the picture is blank")
        return pixels.ravel() * (BRIGHTEST / 255)


class Embed:
    def setup(self):
        self.pca = joblib.load(MODELS / "embed.joblib")

    def warmup(self):
        return [np.ones(64)]

    def predict(self, pictures):
        return self.pca.transform(np.stack(pictures))


class Classify:
    def setup(self):
        self.model = joblib.load(MODELS / "classify.joblib")

    def warmup(self):
        return [np.ones(self.model.n_features_in_)]

    def predict(self, embedded):
        probabilities = self.model.predict_proba(np.stack(embedded))
        digits = probabilities.argmax(axis=1)
        return [topsail.Output(int(d), confidence=float(p[d])) for d, p in zip(digits, probabilities, strict=True)]


p = topsail.Pipeline()
p.add(Decode, workers=2, idempotent=True)
p.add(Embed, batch="aimd", idempotent=True)
p.add(Classify, batch=64, batch_delay=0.001, idempotent=True)

if __name__ == "__main__":  # so that the pipeline can be imported and tried, too
    topsail.serve(p)
