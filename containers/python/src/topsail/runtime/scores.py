"""Confidence and qualifiers beside outputs, by their standard names.

| qualifier | what it is |
|-----------|------------|
| scores    | the probability of each class by its label, of the ten likeliest where there are more |
| margin    | how far the score of the predicted class is above the next one, on the model's own scale |
| stddev    | the standard deviation of the distribution that a number was predicted from |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isfinite
from struct import Struct
from typing import Any

from ..output import Output, Scored
from ..protocol.constants import DType
from ..protocol.reply import OneQualifier, encode_fields
from .failure import need
from .folder import Folder

SCORES, MARGIN, STDDEV = "scores", "margin", "stddev"

_MOST = 10  # classes of one answer
_F64 = Struct("<d")


def wanted(folder: Folder) -> bool | None:
    """The option `scores`: false for none; true for all that the model can give, also where that takes more time; None,
    without it, for what costs next to nothing."""
    return {"": None, "true": True, "false": False}[folder.option("scores", "", ("", "true", "false"))]


class Classes:
    """The labels of a classifier, to put the probabilities of each beside its outputs."""

    def __init__(self, labels: Iterable[Any]) -> None:
        self._keys = [json.dumps(_key(label)) for label in labels]
        self._few = _template(self._keys) if len(self._keys) <= _MOST else b""
        self._qualifier = OneQualifier(SCORES, DType.JSON)

    def __len__(self) -> int:
        return len(self._keys)

    def beside(self, values: Sequence[Any], probabilities: Any, predicted: Any = None) -> list[Any]:
        """The outputs with a row of probabilities each. The confidence is that of the class that was `predicted`, by
        their indices, else the highest. A row that is not finite says nothing."""
        numpy = need("numpy")
        rows = numpy.asarray(probabilities, "float64")
        if predicted is None:
            predicted = rows.argmax(axis=1)
        sure = rows[numpy.arange(len(rows)), predicted].tolist()
        encode, texts = self._qualifier.encode, self._texts(numpy, rows)
        outputs: list[Any] = list(map(Scored, values, map(encode, sure, texts)))
        if not numpy.isfinite(rows).all():
            unknown = ~numpy.isfinite(rows).all(axis=1)
            outputs = [value if is_ else output for value, is_, output in zip(values, unknown, outputs, strict=True)]
        return outputs

    def _texts(self, numpy: Any, rows: Any) -> list[bytes]:
        if self._few:
            return [self._few % tuple(row) for row in rows.tolist()]
        likeliest = numpy.argpartition(-rows, _MOST, axis=1)[:, :_MOST]
        found = numpy.take_along_axis(rows, likeliest, axis=1)
        order = numpy.argsort(-found, axis=1, kind="stable")
        names = numpy.take_along_axis(likeliest, order, axis=1).tolist()
        found = numpy.take_along_axis(found, order, axis=1).tolist()
        return [_template([self._keys[k] for k in ks]) % tuple(row) for ks, row in zip(names, found, strict=True)]


def confidence_beside(values: Sequence[Any], probabilities: Any) -> list[Any]:
    """The outputs with the highest probability of their rows, which costs less than all of them."""
    sure = need("numpy").asarray(probabilities, "float64").max(axis=1).tolist()
    pairs = zip(values, sure, strict=True)
    return [Scored(value, encode_fields(p, [])) if isfinite(p) else value for value, p in pairs]


def two(probabilities: Any) -> Any:
    """The rows of two classes, by the probabilities of the second."""
    numpy = need("numpy")
    second = numpy.asarray(probabilities, "float64")
    return numpy.stack([1 - second, second], axis=1)


def softmax(logits: Any) -> Any:
    """Probabilities from the logarithms of what they are in proportion to."""
    powers = need("numpy").exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def margins(scores: Any) -> Any:
    """How far the best score of each row is above the next one; of one score for two classes, how far it is from 0."""
    numpy = need("numpy")
    if scores.ndim == 1 or scores.shape[1] == 1:
        return numpy.abs(scores).reshape(-1)
    best = numpy.partition(scores, -2, axis=1)
    return best[:, -1] - best[:, -2]


def number_beside(name: str, values: Sequence[Any], numbers: Any) -> list[Any]:
    """The outputs with a number each, or with a list of them. What is not finite is left out."""
    numpy = need("numpy")
    if numbers.ndim > 1:
        return [Output(value, qualifiers={name: row}) for value, row in zip(values, numbers, strict=True)]
    encode, known = OneQualifier(name, DType.FLOAT64).encode, numpy.isfinite(numbers).tolist()
    return [
        Scored(value, encode(None, _F64.pack(number))) if finite else value
        for value, number, finite in zip(values, numbers.tolist(), known, strict=True)
    ]


def _key(label: Any) -> str:
    """A label as the key of an object in JSON."""
    label = label.item() if hasattr(label, "item") else label
    return label if isinstance(label, str) else json.dumps(label, default=str)


def _template(keys: Iterable[str]) -> bytes:
    """An object in JSON, to put a number at each key with %."""
    return ("{" + ",".join(f"{key.replace('%', '%%')}:%.6g" for key in keys) + "}").encode()
