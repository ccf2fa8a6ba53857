"""One batch, from decoded frame to encoded reply: the part of a container that knows no sockets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .complaints import Complaints
from .form import Form, of_queries
from .input_type import DOUBLES, BadInput, InputType
from .model import Model
from .optional import numpy
from .output import Drop
from .wire.constants import NO_DEADLINE, Status
from .wire.payload import Value
from .wire.predict import Input, Predict, deadline
from .wire.reply import Reply

_LISTS = (list, tuple)  # a union of them would be made anew for each batch


class _Failure(NamedTuple):
    status: Status
    message: str


class Runner:
    """Runs batches on a model. Each input gets exactly one answer, whatever the model does."""

    def __init__(
        self,
        model: Model,
        input_type: InputType | None,
        input_length: int = 0,
        retry_singly: bool = True,
        form: Form | None = None,
    ) -> None:
        """`input_type` and `input_length` are those of queries, as far as they are known. A stage of a pipeline gets
        its inputs in another form."""
        self.model = model
        self.input_type = input_type
        self.input_length = input_length
        self.form = form or of_queries(input_type or DOUBLES, input_length)
        self.read = _reader(model, self.form)
        self._retry_singly = retry_singly
        self._complaints = Complaints()

    def run(self, batch: Predict, received: float, max_frame: int, may_drop: bool = True) -> bytes:
        """Answers a batch that came at `received` (monotonic seconds) with the frames of its reply. `may_drop` says
        that the sidecar knows what it is to drop a query."""
        started = time.monotonic()
        reply = Reply(batch.batch, max_frame)
        inputs, places = self._take(batch.inputs, received, started, reply, may_drop)
        if not inputs:
            return reply.finish(0)
        outputs = self._predict(inputs, lambda i: deadline(batch.inputs[places[i]].left, received))
        for place, output in zip(places, outputs, strict=True):
            self._add(reply, place, output, may_drop)
        return reply.finish(_micros(time.monotonic() - started))

    def _take(
        self, batch: Sequence[Input], received: float, now: float, reply: Reply, may_drop: bool
    ) -> tuple[list[Any], Sequence[int]]:
        """What is to be run and at which places it stands in the batch; the other inputs are answered at once."""
        inputs: list[Any] = []
        places: list[int] = []
        read = self.read
        for place, (left, values) in enumerate(batch):
            if left != NO_DEADLINE and deadline(left, received) <= now:
                reply.add_failure(place, Status.EXPIRED, "the time was up before the model could run")
                continue
            try:
                inputs.append(read(values))
                places.append(place)
            except BadInput as e:
                reply.add_failure(place, Status.BAD_INPUT, str(e))
            except Drop as e:
                self._add(reply, place, e, may_drop)
            except Exception as e:
                self._complaints.add("decode failed", e)
                reply.add_failure(place, self.form.unreadable, _describe(e))
        return inputs, places

    def _predict(self, inputs: list[Any], due: Callable[[int], float]) -> Sequence[Any]:
        """One output or failure per input; `due` is the deadline of each."""
        try:
            outputs = self.model.predict(list(inputs))  # a copy, because a model may take its list apart
        except Exception as e:
            if not isinstance(e, Drop):
                self._complaints.add(f"predict failed for {len(inputs)} inputs", e)
            if len(inputs) == 1 or not self._retry_singly:
                return [e] * len(inputs)
            return [self._predict_one(x, due(i)) for i, x in enumerate(inputs)]
        if problem := _problem(outputs, len(inputs)):
            return [_Failure(Status.MODEL_ERROR, problem)] * len(inputs)
        return list(outputs)

    def _predict_one(self, x: Any, due: float) -> Any:
        """After a whole batch failed: finds out which inputs were to blame, as long as there is time."""
        if due <= time.monotonic():
            return _Failure(Status.EXPIRED, "the batch failed, and the time was up before this input was tried alone")
        try:
            outputs = self.model.predict([x])
        except Exception as e:
            return e
        if problem := _problem(outputs, 1):
            return _Failure(Status.MODEL_ERROR, problem)
        return outputs[0]

    def _add(self, reply: Reply, index: int, output: Any, may_drop: bool) -> None:
        if isinstance(output, _Failure):
            reply.add_failure(index, output.status, output.message)
        elif isinstance(output, Drop) and may_drop:
            reply.add_failure(index, Status.DROPPED, str(output))
        elif isinstance(output, Exception):
            reply.add_failure(index, Status.MODEL_ERROR, _describe(output))
        else:
            try:
                body = self.form.write(self.model.encode(output) if self.model.encode else output)
            except Exception as e:
                self._add(reply, index, e, may_drop)
            else:
                reply.add_output(index, body)


def _reader(model: Model, form: Form) -> Callable[[list[Value]], Any]:
    """A function from the values of one input to what predict gets. It raises BadInput, or what the model's decode
    raises."""
    read, decode = form.read, model.decode
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


def _describe(e: Exception) -> str:
    try:
        return f"{type(e).__name__}: {e}"
    except Exception:  # a model's own exception class may fail to print itself
        return type(e).__name__


def _micros(seconds: float) -> int:
    """At least 1, because 0 means that the time is not known; and no more than its u32 holds."""
    return min(max(int(seconds * 1e6), 1), 0xFFFFFFFF)
