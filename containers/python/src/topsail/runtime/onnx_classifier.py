"""The outputs of a classifier in ONNX, as converters of scikit-learn, XGBoost and LightGBM make them: the label, and
the probability of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .failure import need
from .scores import Classes, confidence_beside

_LABELS = ("tensor(int64)", "tensor(string)")
_SUM = 1e-3  # by which the probabilities of a row, in single precision, may miss 1


@dataclass
class Classifier:
    label: str  # the names of both outputs
    probabilities: str
    all: bool  # the probabilities, and not the confidence alone
    _classes: Classes | None = None  # once they are known

    @classmethod
    def of(cls, outputs: Sequence[Any], wanted: bool | None) -> Classifier | None:
        """What two outputs of a model are, by their types and names; None for others, and if it is not `wanted`."""
        if wanted is False or len(outputs) != 2 or outputs[0].type not in _LABELS or len(outputs[0].shape or ()) != 1:
            return None
        second = outputs[1]
        mapped = second.type.startswith("seq(map(")
        tensor = second.type in ("tensor(float)", "tensor(double)") and len(second.shape or ()) == 2
        return (
            cls(outputs[0].name, second.name, bool(wanted))
            if mapped or (tensor and "prob" in second.name.lower())
            else None
        )

    def beside(self, values: list[Any], labels: Any, found: Any) -> list[Any]:
        """The outputs with the probabilities of their rows. Some converters give scores of another kind in their place,
        which are left out."""
        numpy = need("numpy")
        rows = [list(row.values()) for row in found] if isinstance(found, list) else found
        rows = numpy.asarray(rows, "float64")
        if rows.ndim != 2 or not len(rows):
            return values
        likely = (rows >= 0).all(axis=1) & (numpy.abs(rows.sum(axis=1) - 1) < _SUM)
        beside = self._beside(values, labels, found, rows)
        return [b if is_ else value for value, b, is_ in zip(values, beside, likely, strict=True)]

    def _beside(self, values: list[Any], labels: Any, found: Any, rows: Any) -> list[Any]:
        sure = confidence_beside(values, rows)
        if not self.all:
            return sure
        if isinstance(found, list):
            self._classes = self._classes or Classes(found[0])
            return self._classes.beside(values, rows)
        # A tensor does not name the classes: they are its positions, if the labels are.
        if labels.dtype.kind != "i":
            return sure
        self._classes = self._classes or Classes(range(rows.shape[1]))
        beside, agree = self._classes.beside(values, rows), labels == rows.argmax(axis=1)
        return [b if is_ else s for b, s, is_ in zip(beside, sure, agree, strict=True)]
