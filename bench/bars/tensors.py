"""What every server of the case "tensors" has for a model: it looks at three values of an image."""

import numpy as np


def look(image):
    return np.array([image[0, 0, 1], image[1, 100, 7], image[2, 223, 223]], np.float32)


def predict(inputs):  # as Topsail calls it
    return [{"output": look(x["image"])} for x in inputs]
