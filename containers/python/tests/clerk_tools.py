"""What clerk.py imports."""


def add(x):
    return float(sum(x))
