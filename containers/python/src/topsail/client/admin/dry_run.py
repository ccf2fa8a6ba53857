"""Reading the answers to what can be asked with dry_run=True."""

from __future__ import annotations

import json
from collections.abc import Callable

from ..http import Answer
from .base import R
from .record import DryRun


def read_or_dry_run(kind: type[R]) -> Callable[[Answer], R | DryRun]:
    """Reads a record, or what a dry run says."""

    def read(answer: Answer) -> R | DryRun:
        members = json.loads(answer.body)
        if members.get("dry_run") is True and "changes" in members:
            return DryRun.of(members)
        return kind.of(members, answer.etag)

    return read


def gone_or_dry_run(answer: Answer) -> DryRun | None:
    """Reads the answer to a deletion, which says nothing, or what a dry run says."""
    return DryRun.read(answer) if answer.status == 200 else None
