"""Batches as frameworks want them: one array for all inputs of a batch, with the batch as the first dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..optional import numpy


def call(predict: Callable[..., Any], inputs: Sequence[Any], **sessions: Sequence[Any]) -> list[Any]:
    """Calls a predict function that takes stacked inputs once for each shape among the inputs, and returns an output
    for each input. It raises ValueError for outputs that are not one for each input."""
    outputs: list[Any] = [None] * len(inputs)
    for indices in _alike(inputs):
        chosen = {name: [values[i] for i in indices] for name, values in sessions.items()}
        rows = _rows(predict(stack([inputs[i] for i in indices]), **chosen), len(indices))
        for i, row in zip(indices, rows, strict=True):
            outputs[i] = row
    return outputs


def _alike(inputs: Sequence[Any]) -> Iterator[list[int]]:
    """The indices of inputs of one shape, in the order of the first of each."""
    found: dict[Any, list[int]] = {}
    for i, x in enumerate(inputs):
        key = tuple(map(numpy.shape, x.values())) if isinstance(x, Mapping) else numpy.shape(x)
        found.setdefault(key, []).append(i)
    yield from found.values()


def stack(inputs: list[Any]) -> Any:
    """One array of inputs of one shape; of named inputs one for each name. Texts become an array of objects."""
    first = inputs[0]
    if isinstance(first, Mapping):
        return {name: stack([x[name] for x in inputs]) for name in first}
    if isinstance(first, str | bytes | dict | list | type(None)):
        stacked = numpy.empty(len(inputs), object)
        stacked[:] = inputs
        return stacked
    return numpy.stack([numpy.asarray(x) for x in inputs])


def _rows(outputs: Any, count: int) -> Sequence[Any]:
    """What predict returned, as an output for each input."""
    if isinstance(outputs, Mapping):
        columns = {name: _rows(column, count) for name, column in outputs.items()}
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]
    if isinstance(outputs, str | bytes) or not hasattr(outputs, "__len__") or not hasattr(outputs, "__getitem__"):
        raise TypeError(f"predict returned a {type(outputs).__name__}, not an array, a list or a dict of them")
    if len(outputs) != count:
        raise ValueError(f"predict returned {len(outputs)} outputs for a batch of {count}")
    rows: Sequence[Any] = outputs
    return rows
