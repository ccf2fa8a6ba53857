"""What is made of the scores that a model of trees gives."""

from __future__ import annotations

import json
from typing import Any

from .folder import Folder
from .refusal import Refused, need

OUTPUTS = ("value", "margin", "label")


class Outcome:
    """Option `output` is value, margin (before the last transformation) or label, of a classifier; `classes` are the
    labels as a list in JSON, 0, 1, 2, ... without."""

    def __init__(self, folder: Folder) -> None:
        """It raises Refused."""
        self._output = folder.option("output", "value", OUTPUTS)
        self._classes = _classes(folder.option("classes", "null"))
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

    def _named(self, place: Any) -> Any:
        return int(place) if self._classes is None else self._classes[int(place)]


def _classes(text: str) -> list[Any] | None:
    try:
        classes = json.loads(text)
    except ValueError:
        classes = text
    if classes is not None and not isinstance(classes, list):
        raise Refused(f"the option classes = {text!r} is no list in JSON")
    return classes
