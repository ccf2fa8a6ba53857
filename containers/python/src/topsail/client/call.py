"""Calls to a server as values: what is sent, whether it may be sent twice, and how to read the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .http import Answer

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    method: str
    path: str  # with its query, below the base of the server's paths
    read: Callable[[Answer], T]
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False  # being heard twice does no harm
    vanishing: bool = False  # what it deletes may be gone when it is repeated
    also: int = 0  # a status that is an answer, too


def unread(_: Answer) -> None:
    """For answers that go on, which are read as they come."""
