"""A batch of inputs that a sidecar has sent."""

from __future__ import annotations

from typing import NamedTuple

from ..protocol.constants import Status
from ..protocol.predict import Predict
from ..protocol.reply import Reply
from .connection import Connection
from .runner import Runner


class Full(Exception):
    """More batches were sent at once than the protocol allows."""


class Batch(NamedTuple):
    """It remembers its connection: if that is lost meanwhile, the reply is dropped."""

    predict: Predict
    received: float  # time.monotonic seconds
    connection: Connection

    def answer(self, runner: Runner | None) -> None:
        """Runs it on the model that it is for, if there is one, and sends the outputs."""
        if runner is None:
            self.refuse_unknown()
        elif not self.connection.broken:
            c = self.connection
            c.send(runner.run(self.predict, self.received, c.max_frame, may_drop=c.stages))

    def refuse_unknown(self) -> None:
        self.refuse(Status.UNKNOWN_MODEL, f"this container announced no model {self.predict.model}")

    def refuse(self, status: Status, message: str) -> None:
        """Says to each input that it was not run."""
        reply = Reply(self.predict.batch, self.connection.max_frame)
        for index in range(len(self.predict.inputs)):
            reply.add_failure(index, status, message)
        self.connection.send(reply.finish(0))
