"""What a gateway answers. `raw` has all of it, also what a newer gateway says beside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Prediction:
    """The answer to one input.

    `outputs` are all outputs of a model that names them, of which `output` is the first. `confidence` and `qualifiers`
    are what the model says beside them, if it does.

    `default` says that it is the app's default output, and `cause` why. `missing` are the models that were asked and
    silent, `shed` those that were left out because time or capacity was short. `failover` are the current versions that
    have no replica any more, so that the ones before them were asked. Of the policy `prefer`, `model` is the one that
    answered, and `passed_over` says why those before it did not: `{"model": "big:1", "why": "refused_late"}`.
    `explanation`, on request, says how the answer came about.
    """

    output: Any
    default: bool
    query_id: int
    cause: str | None = None
    missing: list[str] = field(default_factory=list)
    shed: list[str] = field(default_factory=list)
    explanation: dict[str, Any] | None = None
    failover: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict, repr=False)
    outputs: dict[str, Any] | None = None
    confidence: float | None = None
    qualifiers: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    passed_over: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def read(cls, answer: Any) -> Prediction:
        return cls(
            output=answer["output"],
            default=answer["default"],
            query_id=answer["query_id"],
            cause=answer.get("default_explanation"),
            missing=answer.get("missing", []),
            shed=answer.get("shed", []),
            failover=answer.get("failover", []),
            explanation=answer.get("explanation"),
            raw=answer,
            outputs=answer.get("outputs"),
            confidence=answer.get("confidence"),
            qualifiers=answer.get("qualifiers", {}),
            model=answer.get("model"),
            passed_over=answer.get("passed_over", []),
        )


@dataclass(frozen=True)
class Learned:
    """What became of one piece of feedback.

    `query_id` is that of the answer it was joined with, if there was one, and `joined` says where the predictions came
    from. `duplicate`: that answer had its feedback already, and nothing was learned. `loss` goes from 0 (right) to 1.
    """

    joined: str
    duplicate: bool
    query_id: int | None = None
    loss: float | None = None
    trained: list[dict[str, str]] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=list)
    forwarded: int = 0
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, answer: Any) -> Learned:
        return cls(
            joined=answer["joined"],
            duplicate=answer["duplicate"],
            query_id=answer.get("query_id"),
            loss=answer.get("loss"),
            trained=answer.get("trained", []),
            models=answer.get("models", []),
            forwarded=answer.get("forwarded", 0),
            raw=answer,
        )
