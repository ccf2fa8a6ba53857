def predict(inputs):
    return [0.5] * len(inputs)
