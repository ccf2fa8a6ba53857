"""A function that answers chats, as a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..output import BadInput
from . import query_session
from .execution import Execution, execution_of
from .query_session import Session

_NEVER = frozenset(("messages", "model", "stream", "stream_options", "n"))  # which are the gateway's to follow


class ChatModel:
    """Calls `answer(messages, **options)` with the members of a chat request. It may be a class or object with such a
    method `predict`, and with the hooks of other models. See serve_chat."""

    input_type = "chat"

    def __init__(self, answer: Any) -> None:
        self._target = answer() if isinstance(answer, type) else answer
        self._answer: Callable[..., Any] = getattr(self._target, "predict", self._target)
        if not callable(self._answer):
            raise TypeError(f"{answer!r} answers no chats: give a function, or a class or object with a predict method")
        self.__qualname__ = getattr(answer, "__qualname__", type(answer).__name__)
        plain = execution_of(self._answer)
        self.execution = Execution.THREADS if plain is Execution.BATCHES else plain
        self._options = Options(self._answer)
        self.predict: Callable[..., Any] = (
            self._predict_in_session if query_session.wanted(self._answer, query_session.ONE) else self._predict
        )

    def __getattr__(self, name: str) -> Any:
        if name == "_target":  # which is not there before __init__
            raise AttributeError(name)
        return getattr(self._target, name)

    def _predict(self, request: dict[str, Any]) -> Any:
        return self._answer(_messages(request), **self._options.of(request))

    def _predict_in_session(self, request: dict[str, Any], session: Session) -> Any:
        options = self._options.of(request) | {query_session.ONE: session}
        return self._answer(_messages(request), **options)

    def join_parts(self, parts: list[Any]) -> Any:
        """Texts as one text; with deltas or chunks among them an object with what clients without parts need."""
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        content: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        finish_reason, usage = "stop", None
        for part in parts:
            said = _said(part)
            content.append(said.get("content") or "")
            for call in said.get("tool_calls") or ():
                _extend(calls.setdefault(call.get("index", 0), {"type": "function", "function": {}}), call)
            finish_reason = said.get("finish_reason") or finish_reason
            usage = said.get("usage") or usage
        whole = {"content": "".join(content), "finish_reason": finish_reason, "usage": usage}
        return whole | ({"tool_calls": [calls[i] for i in sorted(calls)]} if calls else {})


def _messages(request: dict[str, Any]) -> list[Any]:
    messages = request.get("messages")
    if not isinstance(messages, list):  # a request for a completion or for embeddings
        raise BadInput("this model answers chats, and the request has no list of messages")
    return messages


def _extend(call: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Adds what a part says of a call of a tool: its arguments come in pieces."""
    function, more = call["function"], delta.get("function") or {}
    call.update({name: value for name, value in delta.items() if name not in ("index", "function") and value})
    if more.get("name"):
        function["name"] = more["name"]
    function["arguments"] = function.get("arguments", "") + (more.get("arguments") or "")


def _said(part: Any) -> dict[str, Any]:
    """The content, tool_calls, finish_reason and usage of a part: a text, a delta, or a chunk with choices."""
    if isinstance(part, str):
        return {"content": part}
    if not isinstance(part, Mapping):
        raise TypeError(f"a {type(part).__name__} is no part of a chat: yield text, or a dict as OpenAI's deltas are")
    if "choices" not in part:
        return dict(part)
    choice = (part["choices"] or [{}])[0]
    delta = choice.get("delta") or {}
    return {
        "content": delta.get("content"),
        "tool_calls": delta.get("tool_calls"),
        "finish_reason": choice.get("finish_reason"),
        "usage": part.get("usage"),
    }


class Options:
    """The members of a request that a function takes as keywords."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # some built-in functions do not say
            parameters = []
        self._all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        # The first one gets the messages, and a session is Topsail's to give.
        named = {p.name for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        self._never = _NEVER | {query_session.ONE} | {p.name for p in parameters[:1]}
        self._named = named - self._never

    def of(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Without those that are null, which is how clients say that they leave one out."""
        options = {name: value for name, value in request.items() if value is not None and self._takes(name)}
        limit = request.get("max_completion_tokens")  # which is what max_tokens was renamed to
        if limit is not None and "max_tokens" not in options and self._takes("max_tokens"):
            options["max_tokens"] = limit
            if "max_completion_tokens" not in self._named:
                options.pop("max_completion_tokens", None)
        return options

    def _takes(self, name: str) -> bool:
        return name in self._named or (self._all and name not in self._never)
