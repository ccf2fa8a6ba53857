"""Functions that clients of other servers ask."""


def add(inputs):
    return [float(x.sum()) for x in inputs]


def mean(inputs):
    return [float(x.mean()) for x in inputs]


def upper(inputs):
    return [text.upper() for text in inputs]


def price(inputs):
    return [{"price": float(x["area"]) * float(x["rate"]), "class": x["town"][:1]} for x in inputs]
