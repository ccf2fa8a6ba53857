"""A model: what the user wrote, a function or an object, seen in one way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .execution import Execution, execution_of
from .signature import Signature


class Model:
    """Wraps a predict function, an object with a predict method, or a class of such objects.

    With `batched = True` predict gets one array for the whole batch instead of a list of inputs. A generator or
    coroutine gets one input, and so does a plain function with `concurrent = True`, or the number of calls at a time.

    The optional hooks are setup, decode, encode, join_parts, warmup, health, correct, accuracy and teardown. Making a
    Model of a class makes the object, which may take as long as loading does: so it happens where loading happens.
    """

    def __init__(self, served: Any) -> None:
        target = served() if isinstance(served, type) else served
        predict = getattr(target, "predict", target)
        if not callable(predict):
            raise TypeError(f"{served!r} is no model: give a function, or a class or object with a predict method")
        self._target = target
        self.name = getattr(served, "__qualname__", type(served).__name__)
        self.predict: Callable[..., Any] = predict  # a list of inputs; and sessions, if it wants them
        self.decode: Callable[[Any], Any] | None = self._hook("decode")
        self.encode: Callable[[Any], Any] | None = self._hook("encode")
        self.correct: Callable[[list[tuple[Any, Any]], str], Any] | None = self._hook("correct")
        self.accuracy: Callable[[], Any] | None = self._hook("accuracy")
        self.join_parts: Callable[[list[Any]], Any] | None = self._hook("join_parts")
        self.batched: bool = getattr(target, "batched", False)
        self.concurrent: bool | int = getattr(target, "concurrent", False)
        known = getattr(target, "execution", None)  # of a predict that hides which kind of function it calls
        self.execution: Execution = (
            known if isinstance(known, Execution) else execution_of(predict, bool(self.concurrent))
        )
        self.input_type: str | None = getattr(target, "input_type", None)
        self.input_length: int | None = getattr(target, "input_length", None)
        named = getattr(target, "signature", None)  # of a model from a bundle with one
        self.signature: Signature | None = named if isinstance(named, Signature) else None

    def _hook(self, name: str) -> Callable[..., Any] | None:
        hook = getattr(self._target, name, None)
        return hook if callable(hook) else None

    def setup(self) -> None:
        if hook := self._hook("setup"):
            hook()

    def warmup(self) -> list[Any]:
        hook = self._hook("warmup")
        return list(hook()) if hook else []

    @property
    def has_health(self) -> bool:
        return self._hook("health") is not None

    def healthy(self) -> bool:
        """False if the model says so or fails to say; a model without the hook is healthy, and so is None."""
        hook = self._hook("health")
        if not hook:
            return True
        try:
            return hook() is not False
        except Exception:
            return False

    def teardown(self) -> None:
        if hook := self._hook("teardown"):
            hook()
