"""Calls to a gateway as values: where to, the body, whether it may be sent twice, and how to read the answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

from .client_answers import Learned, Prediction
from .client_errors import BadRequest

T = TypeVar("T")
_NAMES = {"user": "uid"}  # of the API, where they are others


@dataclass(frozen=True)
class Request(Generic[T]):
    path: str
    body: bytes
    repeatable: bool  # being heard twice does no harm
    read: Callable[[Any], T]  # of the answer's JSON


class Feedback(TypedDict, total=False):
    """One piece of feedback in a batch; the keys are the arguments of `Client.feedback`."""

    label: Any
    reward: float
    query_id: int
    input: Any
    user: str | int
    context: str | int
    feedback_id: str | int


def predict(app: str, input: Any, options: Mapping[str, Any]) -> Request[Prediction]:
    body = {"input": _some(input)} | _options(options)
    return Request(_path(app, "predict"), _encode(body), True, Prediction.read)


def predict_batch(app: str, inputs: Iterable[Any], options: Mapping[str, Any]) -> Request[list[Prediction]]:
    if isinstance(inputs, (str, bytes, bytearray, memoryview)):  # which would be sent letter by letter
        raise BadRequest(f"{type(inputs).__name__} is one input: put it into a list, or use predict")
    body = {"input_batch": list(map(_some, inputs))} | _options(options)
    return Request(_path(app, "predict"), _encode(body), True, _predictions)


def feedback(app: str, item: Mapping[str, Any]) -> Request[Learned]:
    entry = _feedback(item)
    return Request(_path(app, "update"), _encode(entry), _counts_once(entry), Learned.read)


def feedback_batch(app: str, items: Iterable[Feedback]) -> Request[list[Learned]]:
    entries = list(map(_feedback, items))
    body = {"feedback_batch": entries}
    return Request(_path(app, "update"), _encode(body), all(map(_counts_once, entries)), _learned)


def _path(app: str, action: str) -> str:
    return f"/{quote(app, safe='')}/{action}"


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, by the API's names."""
    return {_NAMES.get(k, k): v for k, v in options.items() if v is not None}


def _feedback(item: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := item.keys() - Feedback.__annotations__.keys():
        raise BadRequest(f"feedback has no {min(unknown)!r}: it takes {', '.join(Feedback.__annotations__)}")
    return _options(item)


def _counts_once(entry: Mapping[str, Any]) -> bool:
    """Feedback to one answer does, or of one id. With an input alone it may be joined with another answer."""
    return "query_id" in entry or "feedback_id" in entry


def _some(input: Any) -> Any:
    if input is None:
        raise BadRequest("an input cannot be None")
    return input


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, default=_plain, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as e:
        raise BadRequest(f"this cannot be sent: {e}") from None


def _plain(value: Any) -> Any:
    """Bytes as base64; arrays of numpy, array.array, tensors and their scalars as numbers."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no input: use numbers, a list or array of them, str or bytes")


def _predictions(answer: Any) -> list[Prediction]:
    return list(map(Prediction.read, answer["batch_predictions"]))


def _learned(answer: Any) -> list[Learned]:
    return list(map(Learned.read, answer["feedback"]))
