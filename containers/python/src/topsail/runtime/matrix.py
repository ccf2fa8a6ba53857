"""A batch as one array, of the type and size that a model takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..output import BadInput
from .failure import PermanentFailure, need


def stack(inputs: list[Any]) -> Any:
    """A numpy array with a row per input. Inputs must be of one length; texts and bytes make an array of objects. Of a
    signature with one input, the rows are its values."""
    numpy = need("numpy")
    if inputs and isinstance(inputs[0], dict):
        inputs = [value for [value] in (x.values() for x in inputs)]
    if inputs and isinstance(inputs[0], (str, bytes)):
        return numpy.array(inputs, dtype=object)
    if len({len(x) for x in inputs}) > 1:
        raise ValueError(f"inputs must be of one length, and have {sorted({len(x) for x in inputs})}")
    return numpy.stack(inputs)


def cast(batch: Any, dtype: Any) -> Any:
    """The batch as an array of the model's own type. Doubles may be rounded; it raises BadInput for a number that the
    type does not have."""
    numpy = need("numpy")
    wanted = numpy.dtype(dtype)
    if batch.dtype.kind not in "biuf" or wanted.kind not in "biuf" or numpy.can_cast(batch.dtype, wanted):
        return batch.astype(wanted, copy=False)
    with numpy.errstate(invalid="ignore", over="ignore"):
        done = batch.astype(wanted)
    lost = numpy.isinf(done) & numpy.isfinite(batch) if wanted.kind == "f" else done != batch
    if lost.any():
        raise BadInput(f"the model takes numbers of type {wanted}, and {batch[lost][0]} is none")
    return done


def fixed_size(sizes: Iterable[tuple[str, int | None]]) -> int:
    """How many rows a model takes at once: 0 where that is open. `sizes` are the first dimensions of its inputs by
    their names, None for an open one. It raises PermanentFailure where they differ or are no number of rows."""
    fixed = {size: name for name, size in sizes if size is not None}
    if len(fixed) > 1 or 0 in fixed:
        said = " and ".join(f"{size} for {name!r}" for size, name in sorted(fixed.items()))
        raise PermanentFailure(
            f"the model's inputs have to have a row for each query, and its first dimensions are {said}: export it "
            "with a first dimension that is open, or the same for all inputs"
        )
    return next(iter(fixed), 0)


def in_batches_of(size: int, run: Callable[[list[Any]], Iterable[Any]], inputs: list[Any]) -> list[Any]:
    """The outputs of a model that takes so many inputs at once, no more and no less; 0: any number. The last ones are
    filled up with copies, whose outputs are dropped."""
    if not size:
        return list(run(inputs))
    found: list[Any] = []
    for i in range(0, len(inputs), size):
        some = inputs[i : i + size]
        found += list(run(some + some[-1:] * (size - len(some))))[: len(some)]
    return found
