"""What runtimes do with inputs and outputs that have names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..container.signature import Signature
from .failure import PermanentFailure
from .matrix import in_batches_of

Arrays = Mapping[str, Any]  # with a row for each query


def dtypes(signature: Signature) -> dict[str, str]:
    """Of the arrays of its inputs, by numpy's names."""
    others = {"string": "object", "bytes": "object", "json": "object", "bfloat16": "float32"}
    return {t.name: others.get(t.type, t.type) for t in signature.inputs}


def is_vector(signature: Signature) -> bool:
    """Whether the only input is a vector, so that a batch is a matrix and no table."""
    return len(signature.inputs) == 1 and len(signature.inputs[0].shape) == 1


def check_inputs(signature: Signature, taken: Iterable[str]) -> None:
    """It raises PermanentFailure where the model takes others than the signature names."""
    said, wanted = sorted(t.name for t in signature.inputs), sorted(taken)
    if said != wanted:
        raise PermanentFailure(
            f"the signature has the inputs {', '.join(said)}, and the model takes {', '.join(wanted)}: make them agree"
        )


def outputs_of(signature: Signature, option: str, given: Iterable[str]) -> list[str]:
    """The outputs that are answered: those of the signature, else that of the option `output`, else all. It raises
    PermanentFailure where the model does not give one."""
    have = list(given)
    chosen = [t.name for t in signature.outputs] or ([option] if option else have)
    if missing := [name for name in chosen if name not in have]:
        raise PermanentFailure(f"the model has no output {missing[0]!r}: it has {', '.join(have)}")
    return chosen


def rows(run: Callable[[Arrays], Arrays], inputs: Arrays, size: int) -> Arrays:
    """Runs a batch: at once, or so many rows after so many where the model takes no other number."""
    if not size:
        return run(inputs)

    def some(indices: list[int]) -> list[dict[str, Any]]:
        found = run({name: x[indices] for name, x in inputs.items()})
        return [{name: x[k] for name, x in found.items()} for k in range(size)]

    answers = in_batches_of(size, some, list(range(len(next(iter(inputs.values()))))))
    return {name: [answer[name] for answer in answers] for name in answers[0]}
