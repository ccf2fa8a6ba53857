"""Reading the answers to what can be asked with dry_run=True."""

from __future__ import annotations

import json
from collections.abc import Callable

from ..client_http import Answer
from .base import R
from .record import Rehearsal


def read_or_rehearsal(kind: type[R]) -> Callable[[Answer], R | Rehearsal]:
    """Reads a record, or what a dry run says."""

    def read(answer: Answer) -> R | Rehearsal:
        members = json.loads(answer.body)
        if members.get("dry_run") is True and "changes" in members:
            return Rehearsal.of(members)
        return kind.of(members, answer.etag)

    return read


def gone_or_rehearsal(answer: Answer) -> Rehearsal | None:
    """Reads the answer to a deletion, which says nothing, or what a dry run says."""
    return Rehearsal.read(answer) if answer.status == 200 else None
