"""One batch, from decoded frame to encoded reply: the part of a container that knows no sockets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..optional import numpy
from ..output import BadInput, Drop
from ..protocol.constants import NO_DEADLINE, Status
from ..protocol.payload import Value
from ..protocol.predict import Input, Predict, deadline
from ..protocol.reply import Reply
from . import query_session, stacking
from .codec import Codec, query_codec
from .error_log import ErrorLog
from .input_type import DOUBLES, InputType
from .model import Model
from .query_session import Session

_LISTS = (list, tuple)  # a union of them would be made anew for each batch


class _Failure(NamedTuple):
    status: Status
    message: str


class Runner:
    """Runs batches on a model. Each input gets exactly one answer, whatever the model does."""

    concurrency = 0  # queries that run side by side; 0: it takes batches

    def __init__(
        self,
        model: Model,
        input_type: InputType | None,
        input_length: int = 0,
        retry_singly: bool = True,
        codec: Codec | None = None,
    ) -> None:
        """`input_type` and `input_length` are those of queries, as far as they are known. A stage of a pipeline
        has another codec."""
        self.model = model
        self.input_type = input_type
        self.input_length = input_length
        self.codec = codec or query_codec(input_type or DOUBLES, input_length)
        self.read = _reader(model, self.codec)
        self._retry_singly = retry_singly
        self._sessions = query_session.wanted(model.predict)
        self._errors = ErrorLog()

    def run(self, batch: Predict, received: float, max_frame: int, may_drop: bool = True) -> bytes:
        """Answers a batch that came at `received` (monotonic seconds) with the frames of its reply. `may_drop` says
        that the sidecar knows what it is to drop a query."""
        started = time.monotonic()
        reply = Reply(batch.batch, max_frame)
        inputs, indices = self._take(batch.inputs, received, started, reply, may_drop)
        if not inputs:
            return reply.finish(0)
        sessions = (
            [query_session.read(batch.inputs[i].left, batch.inputs[i].fields) for i in indices]
            if self._sessions
            else []
        )
        outputs = self._predict(inputs, sessions, lambda i: deadline(batch.inputs[indices[i]].left, received))
        for index, output in zip(indices, outputs, strict=True):
            self._add(reply, index, output, may_drop)
        return reply.finish(micros(time.monotonic() - started))

    def teardown(self) -> None:
        """The end of the model."""
        self.model.teardown()

    def _take(
        self, batch: Sequence[Input], received: float, now: float, reply: Reply, may_drop: bool
    ) -> tuple[list[Any], Sequence[int]]:
        """What is to be run and at which indices of the batch; the other inputs are answered at once."""
        inputs: list[Any] = []
        indices: list[int] = []
        read = self.read
        for index, (left, values, _) in enumerate(batch):
            if left != NO_DEADLINE and deadline(left, received) <= now:
                reply.add_failure(index, Status.EXPIRED, "the time was up before the model could run")
                continue
            try:
                inputs.append(read(values))
                indices.append(index)
            except BadInput as e:
                reply.add_failure(index, Status.BAD_INPUT, str(e))
            except Drop as e:
                self._add(reply, index, e, may_drop)
            except Exception as e:
                self._errors.log("decode failed", e)
                reply.add_failure(index, self.codec.unreadable, described(e))
        return inputs, indices

    def _predict(self, inputs: list[Any], sessions: list[Session], due: Callable[[int], float]) -> Sequence[Any]:
        """One output or failure per input; `due` is the deadline of each."""
        try:
            outputs = self._call(list(inputs), sessions)  # a copy, because a model may take its list apart
        except Exception as e:
            if not isinstance(e, Drop | BadInput):
                self._errors.log(f"predict failed for {len(inputs)} inputs", e)
            if len(inputs) == 1 or not self._retry_singly:
                return [e] * len(inputs)
            return [self._predict_one(x, sessions[i : i + 1], due(i)) for i, x in enumerate(inputs)]
        if problem := _problem(outputs, len(inputs)):
            return [_Failure(Status.MODEL_ERROR, problem)] * len(inputs)
        return list(outputs)

    def _predict_one(self, x: Any, session: list[Session], due: float) -> Any:
        """After a whole batch failed: finds out which inputs were to blame, as long as there is time."""
        if due <= time.monotonic():
            return _Failure(Status.EXPIRED, "the batch failed, and the time was up before this input was tried alone")
        try:
            outputs = self._call([x], session)
        except Exception as e:
            return e
        if problem := _problem(outputs, 1):
            return _Failure(Status.MODEL_ERROR, problem)
        return outputs[0]

    def _call(self, inputs: list[Any], sessions: list[Session]) -> Any:
        wanted = {"sessions": sessions} if self._sessions else {}
        if self.model.batched:
            return stacking.call(self.model.predict, inputs, **wanted)
        return self.model.predict(inputs, **wanted)

    def _add(self, reply: Reply, index: int, output: Any, may_drop: bool) -> None:
        if isinstance(output, _Failure):
            reply.add_failure(index, output.status, output.message)
        elif isinstance(output, Drop) and may_drop:
            reply.add_failure(index, Status.DROPPED, str(output))
        elif isinstance(output, BadInput):
            reply.add_failure(index, Status.BAD_INPUT, str(output))
        elif isinstance(output, Exception):
            reply.add_failure(index, Status.MODEL_ERROR, described(output))
        else:
            try:
                body = self.codec.write(self.model.encode(output) if self.model.encode else output)
            except Exception as e:
                self._add(reply, index, e, may_drop)
            else:
                reply.add_output(index, body)


def _reader(model: Model, codec: Codec) -> Callable[[list[Value]], Any]:
    """A function from the values of one input to what predict gets. It raises BadInput, or what the model's decode
    raises."""
    read, decode = codec.read, model.decode
    return (lambda values: decode(read(values))) if decode else read


def _problem(outputs: Any, count: int) -> str | None:
    """What is wrong with what predict returned. Texts and dicts have a length too, so the type counts."""
    if not isinstance(outputs, _LISTS) and not (numpy is not None and _is_vector(outputs)):
        return f"TypeError: predict returned a {type(outputs).__name__}, not a list of {count} outputs"
    if len(outputs) != count:
        return f"ValueError: predict returned {len(outputs)} outputs for {count} inputs"
    return None


def _is_vector(outputs: Any) -> bool:
    """A numpy array with a row per input is as good as a list, and is what most libraries return."""
    return isinstance(outputs, numpy.ndarray) and outputs.ndim > 0


def described(e: BaseException) -> str:
    try:
        return f"{type(e).__name__}: {e}"
    except Exception:  # a model's own exception class may fail to print itself
        return type(e).__name__


def micros(seconds: float) -> int:
    """At least 1, because 0 means that the time is not known; and no more than its u32 holds."""
    return min(max(int(seconds * 1e6), 1), 0xFFFFFFFF)
