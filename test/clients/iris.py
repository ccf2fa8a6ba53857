"""The flowers that clients ask for: three of the iris data, one of each kind."""

import numpy as np

COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
ROWS = np.array([[5.1, 3.5, 1.4, 0.2], [5.9, 3.0, 4.2, 1.5], [6.7, 3.0, 5.2, 2.3]])
MODELS = {"iris": np.float64, "iris-onnx": np.float32}  # with the type of their inputs and probabilities

_seen = {}


def check(model, labels, probabilities):
    """The labels are right, and both models are as sure of them: they have the same weights."""
    assert labels.tolist() == [0, 1, 2], (model, labels)
    assert probabilities.argmax(axis=1).tolist() == [0, 1, 2] and probabilities.dtype == MODELS[model], probabilities
    _seen[model] = probabilities
    for others in _seen.values():
        assert np.allclose(probabilities, others, atol=1e-4), _seen
