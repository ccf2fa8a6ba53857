"""Answers that come in parts, as the model makes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from typing import Any

from .answers import Prediction
from .connections import Stream
from .errors import ServerError, Timeout, Unavailable, of_cut
from .events import EVENT_STREAM, Event, EventReader
from .flow import Flow
from .items import AsyncItems, Items


class PartsFlow(Flow[tuple[Any]]):
    """What a gateway says of an answer in parts, each a tuple of one: a part may be None."""

    def __init__(self, open: Callable[[], Awaitable[Stream]], name: str, idle: float) -> None:
        super().__init__(open, self._part_by, idle)
        self.answer: Prediction | None = None  # at the end
        self._name, self._seconds = name, idle
        self._events = EventReader()

    async def next(self) -> tuple[Any]:
        """It raises AnswerCut, and ServerError for what is no part."""
        try:
            return await super().next()
        except Unavailable as e:
            if isinstance(e.__cause__, TimeoutError):
                late = f"no part came from {self._name} within {self._seconds:g} s"
                raise Timeout(late) from e.__cause__
            raise

    def begun(self, stream: Stream) -> None:
        if stream.kind.partition(";")[0].strip().lower() != EVENT_STREAM:
            raise ServerError(f"{self._name} does not answer in parts: update it, or use predict", 200)

    def ended(self) -> None:
        raise Unavailable(f"the stream from {self._name} broke: it ended before the answer")

    def _part_by(self, line: bytes) -> tuple[Any] | None:
        """The part that is whole by this line, if one is."""
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
            self.close()
        if event.kind != "message":  # or what a newer gateway says beside
            return None
        output, outputs = event.data["output"], event.data.get("outputs")
        return (output if outputs is None else outputs,)


class Parts(Items[Any]):
    """The parts of one answer as they come: the output of each, or the dict of its outputs if the model names them.

    The query is sent when the first part is asked for. Closing ends the iteration, from any thread, and the gateway
    then cancels the query; so does a `for` that is left early, and the end of a `with`.
    """

    def __init__(self, flow: PartsFlow) -> None:
        super().__init__(flow)
        self._flow = flow

    @property
    def answer(self) -> Prediction | None:
        """The whole answer once all parts have come; None before, and of an answer that was cut."""
        return self._flow.answer

    def __iter__(self) -> Iterator[Any]:
        with closing(self):  # also where a loop is left
            while True:
                try:
                    part = next(self)
                except StopIteration:
                    return
                yield part

    def __next__(self) -> Any:
        return super().__next__()[0]

    def __del__(self) -> None:
        self.close()


class AsyncParts(AsyncItems[Any]):
    """See Parts. It is closed as well when the task that waits for a part is cancelled."""

    def __init__(self, flow: PartsFlow) -> None:
        super().__init__(flow)
        self._flow = flow

    @property
    def answer(self) -> Prediction | None:
        """See Parts.answer."""
        return self._flow.answer

    def __aiter__(self) -> AsyncIterator[Any]:
        return _Loop(self)

    async def __anext__(self) -> Any:
        return (await super().__anext__())[0]

    def __del__(self) -> None:
        self.close()


class _Loop(AsyncIterator[Any]):
    """One `async for`, which closes the parts when it is left."""

    def __init__(self, parts: AsyncParts) -> None:
        self._parts = parts

    def __aiter__(self) -> _Loop:
        return self

    async def __anext__(self) -> Any:
        return await self._parts.__anext__()

    def __del__(self) -> None:
        self._parts.close()
