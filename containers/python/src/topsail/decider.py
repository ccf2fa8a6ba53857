"""A policy of one's own: the model that decides for the apps whose policy is custom and names it.

class Careful(topsail.Decider):
    def select(self, query):  # the cheapest at once, the others in reserve
        return self.ask(sorted(query.candidates, key=lambda c: c.cost), first=1)

    def answer(self, query, answer):  # as each comes
        return self.finish(answer) if (answer.confidence or 0) >= 0.9 else self.next()
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """A model version that can be called. Times are in seconds, 0 where none is known."""

    model: str
    version: str
    ready: bool = True  # it has a replica
    cost: float = 1.0  # against the others
    median: float = 0.0
    p95: float = 0.0


@dataclass(frozen=True)
class Answer:
    """What a model said: an output, or why there is none."""

    model: str
    version: str
    output: Any = None
    outputs: dict[str, Any] | None = None  # all of them by name, of a model that names them
    confidence: float | None = None
    qualifiers: dict[str, Any] | None = None
    failure: str | None = None
    loss: float | None = None  # in feedback, where it is known
    after: float | None = None  # seconds from select until it was there


@dataclass(frozen=True)
class Query:
    """A query on its way, and the state that train has left. Times are in seconds."""

    app: str
    state: Any = None
    user: str = ""
    context: str = ""
    input: Any = None
    elapsed: float = 0.0  # since select
    left: float = 0.0  # until the answer must leave
    candidates: Sequence[Candidate] = ()  # for select
    answers: Sequence[Answer] = ()  # so far, in the order of select
    awaited: Sequence[Candidate] = ()  # called, and silent so far
    reserve: Sequence[Candidate] = ()  # not called, the next one first


class Decider:
    """Decides which models are called for a query and what its answer is. An app names it in
    `policy = { kind = "custom", model = NAME }`; it is registered like any model, and not linked to the app.

    Every method may be called from several queries in any order, and is told all that it needs. What raises or is late
    leaves the query to the policy's fallback.
    """

    input_type = "strings"

    def select(self, query: Query) -> dict[str, Any]:
        """Which models to call: what ask says. Here it is all that are ready."""
        return self.ask([c for c in query.candidates if c.ready] or query.candidates)

    def answer(self, query: Query, answer: Answer) -> dict[str, Any] | None:
        """What to do now that this has come: finish, next or wait (None). A class without this method is first called
        when all have answered."""
        return None

    def combine(self, query: Query) -> dict[str, Any]:
        """The answer once all have answered or the time is up: what finish says. Here it is the output of which its
        model is the most sure."""
        best = max((a for a in query.answers if a.failure is None), key=lambda a: a.confidence or 0.0, default=None)
        return {} if best is None else self.finish(best)

    def train(self, query: Query, label: Any, loss: float) -> Any:
        """The state after feedback: anything that JSON can say, at most 256 KiB. The label is None where the client
        gave only the loss; query.answers are what the models had said, each with its own loss where that is known. The
        same arguments must give the same state."""
        return query.state

    def ask(self, models: Iterable[Candidate | str], *, first: int = 0) -> dict[str, Any]:
        """Call these models, the most important first; with `first`, so many at once, the others when next says so."""
        names = [m if isinstance(m, str) else f"{m.model}:{m.version}" for m in models]
        return {"ask": names, "first": first, "answers": type(self).answer is not Decider.answer}

    def finish(self, output: Any, confidence: float | None = None) -> dict[str, Any]:
        """Answer with this: an Answer, or an output of one's own."""
        said = {"model": f"{output.model}:{output.version}"} if isinstance(output, Answer) else {"output": output}
        confidence = output.confidence if confidence is None and isinstance(output, Answer) else confidence
        return said if confidence is None else {**said, "confidence": confidence}

    def next(self, models: int = 1) -> dict[str, Any]:
        """Call so many more of those in reserve."""
        return {"next": models}

    def wait(self, seconds: float | None = None) -> dict[str, Any]:
        """Wait for the next answer; with `seconds`, no longer than that: then answer is called with the last so far."""
        return {} if seconds is None else {"wait_micros": round(seconds * 1e6)}

    def predict(self, texts: Sequence[str]) -> list[Any]:
        """Decides what each of the texts asks, as the gateway calls it."""
        return [self._decide(text) for text in texts]

    def _decide(self, text: str) -> Any:
        try:
            return self._do(json.loads(text))
        except Exception as error:  # of this query alone
            return error

    def _do(self, told: dict[str, Any]) -> dict[str, Any]:
        query = _query(told)
        match told["op"]:
            case "select":
                return self.select(query)
            case "answer":
                new = [a for a, t in zip(query.answers, told["answers"], strict=True) if t.get("new")]
                said: dict[str, Any] = {}
                for answer in new or query.answers[-1:]:
                    said = self.answer(query, answer) or {}
                    if "model" in said or "output" in said:
                        break
                return said
            case "combine":
                return self.combine(query)
            case "train":
                feedback = told["feedback"]
                return {"state": self.train(query, feedback.get("label"), feedback["loss"])}
        raise ValueError(
            f"the gateway asks {told['op']!r}, which this version of topsail does not know: install a newer one"
        )


def _query(told: dict[str, Any]) -> Query:
    left = told.get("left_micros", told.get("budget_micros", 0))
    return Query(
        app=told["app"],
        state=told.get("state"),
        user=told.get("user", ""),
        context=told.get("context", ""),
        input=told.get("input"),
        elapsed=told.get("elapsed_micros", 0) / 1e6,
        left=left / 1e6,
        candidates=_candidates(told.get("candidates", ())),
        answers=_answers(told.get("feedback", told).get("answers", ())),
        awaited=_candidates(told.get("awaited", ())),
        reserve=_candidates(told.get("next", ())),
    )


def _candidates(told: Iterable[dict[str, Any]]) -> list[Candidate]:
    return [
        Candidate(
            c["model"],
            c["version"],
            c.get("ready", True),
            c.get("cost", 1.0),
            c.get("median_micros", 0) / 1e6,
            c.get("p95_micros", 0) / 1e6,
        )
        for c in told
    ]


def _answers(told: Iterable[dict[str, Any]]) -> list[Answer]:
    fields = ("output", "outputs", "confidence", "qualifiers", "failure", "loss")
    return [
        Answer(
            a["model"],
            a["version"],
            **{name: a.get(name) for name in fields},
            after=a["after_micros"] / 1e6 if "after_micros" in a else None,
        )
        for a in told
    ]
