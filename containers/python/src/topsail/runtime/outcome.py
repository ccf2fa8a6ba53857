"""What is made of the scores that a model of trees gives."""

from __future__ import annotations

import json
from typing import Any

from .failure import PermanentFailure, need
from .folder import Folder
from .scores import Classes, two

OUTPUTS = ("value", "margin", "label")


class Outcome:
    """Option `output` is value, margin (before the last transformation) or label, of a classifier; `classes` are the
    labels as a list in JSON, 0, 1, 2, ... without."""

    def __init__(self, folder: Folder) -> None:
        """It raises PermanentFailure."""
        self._output = folder.option("output", "value", OUTPUTS)
        self._classes = classes_of(folder)
        self._beside: Classes | None = None  # once it is known how many there are
        self.margin = self._output == "margin"
        self.label = self._output == "label"

    def of(self, scores: Any, many: bool = False) -> list[Any]:
        """An output for each row: the likeliest of several classes, or whether one probability is above one half; with
        `many` labels, that of each."""
        if not self.label:
            return list(scores)
        scores = need("numpy").asarray(scores)
        if many:
            return [[self._named(k) for k in row] for row in scores > 0.5]
        return [self._named(k) for k in (scores.argmax(axis=1) if scores.ndim > 1 else scores > 0.5)]

    def scored(self, scores: Any, kind: str) -> list[Any]:
        """The same with their confidence and the probabilities of all classes, where the scores are that: of a `kind`
        that is `classes`, or `second` of two."""
        values = self.of(scores)
        if kind == "second" and scores.ndim == 1:
            scores = two(scores)
        if not kind or scores.ndim != 2 or not len(scores):
            return values
        return self._labels(scores.shape[1]).beside(values, scores)

    def _labels(self, count: int) -> Classes:
        if self._beside is None:
            named = self._classes is not None and len(self._classes) == count
            self._beside = Classes(self._classes if named and self._classes else range(count))
        return self._beside

    def _named(self, index: Any) -> Any:
        return int(index) if self._classes is None else self._classes[int(index)]


def classes_of(folder: Folder) -> list[Any] | None:
    """The option `classes`. It raises PermanentFailure."""
    text = folder.option("classes", "null")
    try:
        classes = json.loads(text)
    except ValueError:
        classes = text
    if classes is not None and not isinstance(classes, list):
        raise PermanentFailure(f"the option classes = {text!r} is no list in JSON")
    return classes
