"""One query on its way through a model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ...output import BadInput, Drop
from ...protocol import payload
from ...protocol.constants import Status
from ...protocol.predict import Input, deadline
from .. import query_session
from ..codec import Codec
from ..error_log import ErrorLog
from ..model import Model
from ..runner import described
from .whole import MOST, Whole

_NO_VALUES = payload.encode([])  # the end of an answer whose whole was not collected


class Answer(Protocol):
    """What takes the answer of one query. No two of its methods are called at once, and none after one that ends it,
    which is told how many seconds the model took."""

    @property
    def takes_parts(self) -> bool: ...

    @property
    def may_drop(self) -> bool:
        """Whether the other side knows what it is to drop a query."""

    def part(self, body: bytes) -> None:
        """It raises OverflowError for one that cannot be sent."""

    def output(self, body: bytes, took: float) -> None:
        """Ends it with the whole."""

    def failure(self, status: Status, message: str, took: float) -> None:
        """Ends it without."""

    def fatal(self, e: BaseException) -> None:
        """Takes what the model raised to end its process, before the failure of its query."""


class Served(NamedTuple):
    """What all queries have in common."""

    model: Model
    codec: Codec
    read: Callable[[list[payload.Value]], Any]
    session: bool  # whether the model wants the session of a query
    errors: ErrorLog


class Call:
    """Is run by one thread, and may be cancelled by another. Nothing is answered after its end, whatever the model goes
    on to do."""

    def __init__(self, served: Served, input: Input, received: float, answer: Answer) -> None:
        """`received` is when the query came, in monotonic seconds."""
        self.ended = False
        self.ended_at = 0.0  # monotonic seconds
        self._served = served
        self._input = input
        self._received = received
        self._began = 0.0  # when the model got it; 0: not yet
        self._answer = answer
        self._lock = threading.Lock()  # guards ended, and is held for each piece of the answer
        self._whole = Whole(served.model.join_parts)

    def begin(self) -> tuple[Any, dict[str, Any]] | None:
        """The input and the keywords for predict. It is None for a query that has ended, or is answered at once."""
        left, values, fields = self._input
        if self.ended:
            return None
        if deadline(left, self._received) <= time.monotonic():
            self.fail(Status.EXPIRED, "the time was up before the model could run")
            return None
        try:
            x = self._served.read(values)
        except BadInput as e:
            self.fail(Status.BAD_INPUT, str(e))
        except Drop as e:
            self.drop(e)
        except Exception as e:
            self._served.errors.log("decode failed", e)
            self.fail(self._served.codec.unreadable, described(e))
        else:
            self._began = time.monotonic()
            return x, {"session": query_session.read(left, fields)} if self._served.session else {}
        return None

    def add(self, part: Any) -> bool:
        """Sends a part, and is False for a query that has ended: the model is to be stopped. An exception among the
        parts ends it, and so does a part that cannot be sent."""
        if self.ended:
            return False
        try:
            if isinstance(part, Exception):
                raise part
            body = self._write(part)
            self._whole.add(part, len(body))
            with self._lock:
                if not self.ended and self._answer.takes_parts:
                    self._answer.part(body)
        except Exception as e:
            self.fail_with(e)
        return not self.ended

    def finish(self, output: Any) -> None:
        """Ends it with what predict returned."""
        if isinstance(output, Exception):
            self.fail_with(output)
            return
        try:
            body = self._write(output)
        except Exception as e:
            self.fail_with(e)
        else:
            self._output(body)

    def finish_parts(self, returned: Any = None) -> None:
        """Ends it behind its parts. What a generator returned is the whole."""
        if self.ended:
            return
        without = self._answer.takes_parts and self._whole.count > 0  # whether the parts are enough
        if self._whole.too_large and returned is None and not without:
            self.fail(
                Status.MODEL_ERROR,
                f"OverflowError: the output is too large: {self._whole.count} parts have more than {MOST} bytes, "
                "and can only be sent one by one, to clients that take them",
            )
            return
        try:
            if self._whole.too_large and returned is None:
                body = _NO_VALUES
            else:
                body = self._write(self._whole.join() if returned is None else returned)
        except Exception as e:  # parts that cannot be joined
            if not without:
                self.fail_with(e)
                return
            body = _NO_VALUES
        if without and len(body) > MOST:
            body = _NO_VALUES
        self._output(body)

    def raised(self, e: BaseException) -> None:
        """Ends it with what predict raised."""
        if self.ended:
            return  # it was cancelled, and this is how the model ended
        if not isinstance(e, Drop | BadInput):
            self._served.errors.log("predict failed", e)
        if isinstance(e, SystemExit | KeyboardInterrupt):
            self._answer.fatal(e)
        self.fail_with(e)

    def cancel(self) -> None:
        self.fail(Status.CANCELLED, "the query was cancelled")

    def fail_with(self, e: BaseException) -> None:
        if isinstance(e, Drop):
            self.drop(e)
        elif isinstance(e, BadInput):
            self.fail(Status.BAD_INPUT, str(e))
        else:
            self.fail(Status.MODEL_ERROR, described(e))

    def drop(self, e: Drop) -> None:
        if self._answer.may_drop:
            self.fail(Status.DROPPED, str(e))
        else:
            self.fail(Status.MODEL_ERROR, described(e))

    def fail(self, status: Status, message: str) -> None:
        self._end(lambda answer, took: answer.failure(status, message, took))

    def _output(self, body: bytes) -> None:
        self._end(lambda answer, took: answer.output(body, took))

    def _end(self, say: Callable[[Answer, float], None]) -> None:
        with self._lock:
            if not self.ended:
                self.ended_at, self.ended = time.monotonic(), True
                say(self._answer, self.ended_at - self._began if self._began else 0.0)

    def _write(self, output: Any) -> bytes:
        encode = self._served.model.encode
        return self._served.codec.write(encode(output) if encode else output)
