"""Runs queries on a model that takes one input at a time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from ...protocol.constants import ANY_CONCURRENCY, Status
from ...protocol.predict import Input, Predict
from ...protocol.reply import Reply
from .. import query_session
from ..codec import Codec
from ..connection import Connection
from ..execution import Execution
from ..input_type import InputType
from ..model import Model
from ..runner import Runner, micros
from .call import Answer, Call, Served
from .exchange import Send
from .threads import MOST, Threads

if TYPE_CHECKING:
    from .event_loop import EventLoop

_PATIENCE = 1.0  # seconds for what was cancelled to end, before the model is torn down


class ConcurrentRunner(Runner):
    """Has threads or an event loop of its own, on which all of the model but its hooks runs."""

    def __init__(
        self,
        model: Model,
        input_type: InputType | None,
        input_length: int = 0,
        codec: Codec | None = None,
        most: int | None = None,
    ) -> None:
        """`most` is how many queries may run at a time, if that is known."""
        super().__init__(model, input_type, input_length, codec=codec)
        session = query_session.wanted(model.predict, query_session.ONE)
        self._served = Served(model, self.codec, self.read, session, self._errors)
        self._executor: Threads | EventLoop
        self.send: Send  # a frame, from where the model runs
        if model.execution is Execution.EVENT_LOOP:
            from .event_loop import EventLoop  # asyncio takes time to import
            from .outbox import Outbox

            self.concurrency = most or ANY_CONCURRENCY
            self._executor = EventLoop(model.predict, most, self._errors)
            self.send = Outbox(self._executor.call_soon).send
        else:
            self.concurrency = most or MOST
            self._executor = Threads(model.predict, self.concurrency, self._errors)
            self.send = Connection.send

    def call(self, input: Input, received: float, answer: Answer) -> Call:
        return Call(self._served, input, received, answer)

    def start(self, call: Call) -> None:
        self._executor.start(call)

    def cancel(self, call: Call) -> None:
        self._executor.cancel(call)

    def run(self, batch: Predict, received: float, max_frame: int, may_drop: bool = True) -> bytes:
        """Answers a batch, as sidecars send them that know no parts, with the whole of each output. Its inputs run side
        by side."""
        started = time.monotonic()
        reply = Reply(batch.batch, max_frame)
        together = _Together(reply, len(batch.inputs), may_drop)
        for index, input in enumerate(batch.inputs):
            self.start(self.call(input, received, _Entry(together, index)))
        together.wait()
        return reply.finish(micros(time.monotonic() - started))

    def teardown(self) -> None:
        self._executor.close(_PATIENCE)
        super().teardown()


class _Together:
    """The answers of a batch, which ends when all of them are there."""

    def __init__(self, reply: Reply, count: int, may_drop: bool) -> None:
        self.reply = reply
        self.may_drop = may_drop
        self.changed = threading.Condition()  # guards the following, and the reply
        self.missing = count
        self.fatal: BaseException | None = None

    def wait(self) -> None:
        """It raises what a model raised to end its process."""
        with self.changed:
            self.changed.wait_for(lambda: self.fatal or not self.missing)
        if self.fatal:
            raise self.fatal


class _Entry:
    """The answer of one input of a batch."""

    takes_parts = False

    def __init__(self, together: _Together, index: int) -> None:
        self.may_drop = together.may_drop
        self._together = together
        self._index = index

    def part(self, body: bytes) -> None:
        raise NotImplementedError  # it takes none

    def output(self, body: bytes, took: float) -> None:
        with self._together.changed:
            self._together.reply.add_output(self._index, body)
            self._came()

    def failure(self, status: Status, message: str, took: float) -> None:
        with self._together.changed:
            self._together.reply.add_failure(self._index, status, message)
            self._came()

    def _came(self) -> None:
        self._together.missing -= 1
        self._together.changed.notify()

    def fatal(self, e: BaseException) -> None:
        with self._together.changed:
            self._together.fatal = e
            self._together.changed.notify()
