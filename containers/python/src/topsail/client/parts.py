"""Answers that come in parts, as the model makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .answers import Prediction
from .errors import ServerError, Timeout, TopsailError, Unavailable, of_cut
from .events import EVENT_STREAM, Event, EventReader
from .http import Stream


class PartsReader:
    """What a gateway has said of an answer in parts."""

    def __init__(self, name: str, idle: float) -> None:
        self.answer: Prediction | None = None  # at the end
        self._name, self._idle = name, idle
        self._events = EventReader()

    def check(self, kind: str) -> None:
        """It raises ServerError for a Content-Type that has no parts."""
        if kind.partition(";")[0].strip().lower() != EVENT_STREAM:
            raise ServerError(f"{self._name} does not answer in parts: update it, or use predict", 200)

    def read(self, line: bytes) -> tuple[Any] | None:
        """The part that is whole by this line, if one is. It raises AnswerCut, or ServerError for what is no part."""
        if (event := self._events(line)) is None:
            return None
        if event.kind == "error":
            raise of_cut(event.data)
        try:
            return self._part(event)
        except (TypeError, KeyError, AttributeError):
            raise ServerError(f"this is no part of an answer: {str(event.data)[:100]}", 200) from None

    def _part(self, event: Event) -> tuple[Any] | None:
        if event.kind == "end":
            self.answer = Prediction.read(event.data)
        if event.kind != "message":  # or what a newer gateway says beside
            return None
        output, outputs = event.data["output"], event.data.get("outputs")
        return (output if outputs is None else outputs,)

    def failure(self, error: Unavailable) -> TopsailError:
        """What a stream that broke means here."""
        if isinstance(error.__cause__, TimeoutError):
            return Timeout(f"no part came from {self._name} within {self._idle:g} s")
        return error

    def ended(self) -> None:
        """It raises Unavailable for a stream that ended before the answer."""
        if self.answer is None:
            raise Unavailable(f"the stream from {self._name} broke: it ended before the answer")


class Parts(Iterator[Any]):
    """The parts of one answer as they come: the output of each, or the dict of its outputs if the model names them.

    The query is sent when the first part is asked for. Closing ends the iteration, from any thread, and the gateway
    then cancels the query; so does a `for` that is left early, and the end of a `with`.
    """

    def __init__(self, open: Callable[[], Stream], name: str, idle: float) -> None:
        self._open, self._idle = open, idle
        self._reader = PartsReader(name, idle)
        self._stream: Stream | None = None
        self._lines: Iterator[bytes] = iter(())
        self._closed = False

    @property
    def answer(self) -> Prediction | None:
        """The whole answer once all parts have come; None before, and of an answer that was cut."""
        return self._reader.answer

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                try:
                    part = next(self)
                except StopIteration:
                    return
                yield part
        finally:  # also where a loop is left
            self.close()

    def __next__(self) -> Any:
        try:
            if self._stream is None and not self._closed:
                self._begin(self._open())
            for line in self._lines:
                if (part := self._reader.read(line)) is not None:
                    return part[0]
                if self.answer is not None:
                    break
            if not self._closed:
                self._reader.ended()
            raise StopIteration
        except Unavailable as e:
            self.close()
            raise self._reader.failure(e) from e.__cause__
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _begin(self, stream: Stream) -> None:
        self._stream = stream
        self._reader.check(stream.kind)
        self._lines = stream.lines(self._idle)
        if self._closed:  # by another thread, which did not see the stream
            stream.close()
