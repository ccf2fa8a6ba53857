"""A function of one's own: two versions of it, and the way back. It needs cloudpickle here, and nothing where it runs."""

import topsail

RATE = 1.1


def gross(inputs):
    return [float(sum(x)) * RATE for x in inputs]


def rounded(inputs):
    return [round(float(sum(x)) * RATE) for x in inputs]


first = topsail.deploy_python_function("gross", gross, example=[10.0, 20.0], slo=0.05, default=-1)
second = topsail.deploy_python_function("gross", rounded, example=[10.0, 20.0])
print(second, "says", second.predict([1.0, 2.0]).output)

print(second.rollback(), "is current again")
