"""Serve a Python model with Topsail.

    import topsail

    def predict(inputs):            # a list of inputs in, a list of the same length out
        return [sum(x) for x in inputs]

    topsail.serve(predict, input_type="doubles")

See the README for classes with setup and warm-up, outputs, metrics, and `python -m topsail`.
"""

from .metrics import Counter, Gauge, Histogram, counter, gauge, histogram
from .output import Error, Output
from .serving import serve
from .version import __version__

__all__ = [
    "Counter",
    "Error",
    "Gauge",
    "Histogram",
    "Output",
    "__version__",
    "counter",
    "gauge",
    "histogram",
    "serve",
]
