"""Outputs that are themselves the scores of classes, where a bundle says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .failure import need
from .folder import Folder
from .outcome import classes_of
from .scores import Classes, softmax

KINDS = ("softmax", "probabilities")


class OutputScores:
    """Option `scores` says what the numbers of an output are: probabilities of classes, or what softmax makes them
    from. `classes` are the names of the classes, as a list in JSON, 0, 1, 2, ... without. Outputs stay as they are."""

    def __init__(self, softmax: bool, classes: list[Any] | None) -> None:
        self._softmax, self._names = softmax, classes
        self._classes: Classes | None = None  # once it is known how many there are

    @classmethod
    def of(cls, folder: Folder) -> OutputScores | None:
        """What the bundle says, if it does. It raises PermanentFailure."""
        kind = folder.option("scores", "", ("", *KINDS))
        return cls(kind == "softmax", classes_of(folder)) if kind else None

    def beside_named(self, outputs: Mapping[str, Any]) -> list[Any]:
        """The same of a model that names its output. It raises ValueError for one with several."""
        if len(outputs) != 1:
            raise ValueError(f"the option scores is for a model with one output, and this one has {', '.join(outputs)}")
        return self.beside(*outputs.values())

    def beside(self, outputs: Any) -> list[Any]:
        """It raises ValueError for outputs that are no vectors of as many numbers as there are classes."""
        numpy = need("numpy")
        outputs = numpy.asarray(outputs)
        if outputs.ndim != 2 or outputs.dtype.kind != "f":
            raise ValueError(
                f"the option scores is for outputs that are vectors of floats, and these are of {outputs.dtype} and "
                f"{outputs.ndim - 1} dimensions"
            )
        if self._classes is None:
            names = self._names if self._names is not None else range(outputs.shape[1])
            if len(names) != outputs.shape[1]:
                raise ValueError(f"there are {len(names)} classes, and the output has {outputs.shape[1]} numbers")
            self._classes = Classes(names)
        rows = outputs.astype("float64")
        return self._classes.beside(list(outputs), softmax(rows) if self._softmax else rows)
