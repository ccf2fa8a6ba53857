"""A batch as one array."""

from __future__ import annotations

from typing import Any

from .failure import need


def stack(inputs: list[Any]) -> Any:
    """A numpy array with a row per input. Inputs must be of one length; texts and bytes make an array of objects."""
    numpy = need("numpy")
    if inputs and isinstance(inputs[0], (str, bytes)):
        return numpy.array(inputs, dtype=object)
    if len({len(x) for x in inputs}) > 1:
        raise ValueError(f"inputs must be of one length, and have {sorted({len(x) for x in inputs})}")
    return numpy.stack(inputs)
