"""Models that answer chats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .deployment import Deployment
from .example import Example
from .failure import DeployFailed
from .packing import deploy
from .python import frozen_function
from .terms import Terms

_HELLO = ({"role": "user", "content": "Hello"},)


def deploy_chat(
    name: str,
    answer: Callable[..., Any] | str | Any,
    *,
    example: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys what `topsail.serve_chat` takes: a function from messages to a text or a generator of its parts, which
    gets the other members of a request as the keywords that it names; an object or class with such a `predict` method;
    or the name of one, "module:object". Its app answers OpenAI's API, too. `example` is a list of messages or a whole
    request, a greeting without it. `slo` is until the first part, 5 s without it."""
    said = Terms.of(terms)
    request = dict(example) if isinstance(example, Mapping) else {"messages": list(example or _HELLO)}
    if not isinstance(request.get("messages"), list):
        raise DeployFailed("the example has no list of messages: give one, or a request with the member messages")
    frozen, entry = frozen_function(answer)
    return deploy(name, "python", entry, frozen, Example(request, "chat"), 0, {"chat": "messages"}, said)
