"""What a gateway is asked, as calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypedDict, TypeVar
from urllib.parse import quote

from .answers import Learned, Prediction
from .body import encoded
from .call import Call
from .errors import BadRequest
from .http import Answer

T = TypeVar("T")
_NAMES = {"user": "uid"}  # of the API, where they are others


class Feedback(TypedDict, total=False):
    """One piece of feedback in a batch; the keys are the arguments of `Client.feedback`."""

    label: Any
    reward: float
    query_id: int
    input: Any
    user: str | int
    context: str | int
    feedback_id: str | int


def predict(app: str, input: Any, options: Mapping[str, Any]) -> Call[Prediction]:
    body = {"input": _some(input)} | _options(options)
    return _call(app, "predict", body, True, Prediction.read)


def predict_batch(app: str, inputs: Iterable[Any], options: Mapping[str, Any]) -> Call[list[Prediction]]:
    if isinstance(inputs, (str, bytes, bytearray, memoryview)):  # which would be sent letter by letter
        raise BadRequest(f"{type(inputs).__name__} is one input: put it into a list, or use predict")
    rows = inputs if hasattr(inputs, "ndim") else list(map(_some, inputs))  # an array is sent whole, row after row
    return _call(app, "predict", {"input_batch": rows} | _options(options), True, _predictions)


def feedback(app: str, item: Mapping[str, Any]) -> Call[Learned]:
    entry = _feedback(item)
    return _call(app, "update", entry, _counts_once(entry), Learned.read)


def feedback_batch(app: str, items: Iterable[Feedback]) -> Call[list[Learned]]:
    entries = list(map(_feedback, items))
    return _call(app, "update", {"feedback_batch": entries}, all(map(_counts_once, entries)), _learned)


def health() -> Call[bool]:
    return Call("GET", "/health", lambda answer: answer.status == 200, also=503)


def _call(app: str, action: str, body: Any, repeatable: bool, read: Callable[[Any], T]) -> Call[T]:
    def said(answer: Answer) -> T:
        return read(json.loads(str(answer.body, "utf-8")))

    return Call("POST", _path(app, action), said, encoded(body), repeatable=repeatable)


@lru_cache(1024)
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


def _predictions(answer: Any) -> list[Prediction]:
    """A gateway answers a batch of one as it answers its input alone, which is Clipper's way."""
    return list(map(Prediction.read, answer.get("batch_predictions", [answer])))


def _learned(answer: Any) -> list[Learned]:
    return list(map(Learned.read, answer["feedback"]))
