"""What TorchServe's default handlers for images do around a module: `topsail import` names them as the option `handler`
of the runtime `torch`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..output import BadInput, Output
from .failure import PermanentFailure, need
from .scores import softmax

CLASSIFIER, SEGMENTER = "image_classifier", "image_segmenter"

_SHORTER, _SIDE = 256, 224  # pixels: of the shorter side, and of the square in the middle of it
_MEAN, _STDDEV = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
_NARROWEST = 100  # times that an image may be longer than wide: resized, it grows by as much
_BEST = 5  # classes that are answered
_NAMES = "index_to_name.json"

Forward = Callable[[Any], Any]  # of a batch as an array


def handling(handler: str, forward: Forward, folder: Path) -> ImageModel:
    """It raises PermanentFailure."""
    after = Classes.read(folder / _NAMES) if handler == CLASSIFIER else pixels
    return ImageModel(forward, after)


class ImageModel:
    """A module that gets images as arrays of one size, from files of images: the only input of its signature."""

    def __init__(self, forward: Forward, after: Callable[[Any], list[Any]]) -> None:
        """`after` makes answers from the outputs of the module."""
        self._numpy, self._image = need("numpy"), need("PIL.Image")
        self._forward, self._after = forward, after

    def predict(self, inputs: list[Mapping[str, bytes]]) -> list[Any]:
        return self._after(self._forward(self._numpy.stack([self._array(*x.values()) for x in inputs])))

    def _array(self, file: bytes) -> Any:
        """Three channels, each with the mean and deviation that models are trained with. It raises BadInput."""
        try:
            image = self._image.open(io.BytesIO(file)).convert("RGB")
        except Exception:  # a damaged file may raise anything
            raise BadInput("the input is not a file of an image, such as JPEG or PNG, or is damaged") from None
        wide, high = image.size
        shorter = min(wide, high)
        if max(wide, high) > _NARROWEST * shorter:
            raise BadInput(
                f"an image of {wide} by {high} pixels is too narrow: it may be {_NARROWEST} times longer than wide"
            )
        image = image.resize((_SHORTER * wide // shorter, _SHORTER * high // shorter), self._image.Resampling.BILINEAR)
        left, top = (round((n - _SIDE) / 2) for n in image.size)
        image = image.crop((left, top, left + _SIDE, top + _SIDE))
        pixels = self._numpy.asarray(image, "float32") / 255
        mean, stddev = (self._numpy.array(x, "float32") for x in (_MEAN, _STDDEV))
        return ((pixels - mean) / stddev).transpose(2, 0, 1)


class Classes:
    """The likeliest classes with their probabilities, by their names."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    @classmethod
    def read(cls, path: Path) -> Classes:
        """It raises PermanentFailure. Without the file, classes are numbers."""
        try:
            names = json.loads(path.read_text()) if path.exists() else {}
        except ValueError as e:
            raise PermanentFailure(f"{path.name} is not valid JSON: {e}") from None
        if not isinstance(names, dict):
            raise PermanentFailure(f"{path.name} must be an object, of names by the numbers of classes")
        listed = names.get("object_type_names")  # as older archives have them
        return cls({str(i): name for i, name in enumerate(listed)} if isinstance(listed, list) else names)

    def __call__(self, logits: Any) -> list[Any]:
        return list(map(self._answer, softmax(logits)))

    def _answer(self, p: Any) -> Output:
        best = (-p).argsort(kind="stable")[:_BEST]
        return Output({self._name(int(k)): float(p[k]) for k in best}, confidence=float(p[best[0]]))

    def _name(self, index: int) -> str:
        """A file may have an id before the name, as ImageNet's does."""
        name = self._names.get(str(index), index)
        return str(name[-1] if isinstance(name, list) and name else name)


def pixels(outputs: Any) -> list[Any]:
    """The likeliest class of each pixel and its probability."""
    numpy = need("numpy")
    p = softmax(outputs)
    return list(numpy.stack([p.argmax(axis=1), p.max(axis=1)], axis=3).astype("float32"))
