"""Small tables for people."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns as wide as their widest cell; those in `left` begin at the left, numbers end at the right."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]

    def cell(i: int, text: str) -> str:
        return text.ljust(widths[i]) if i in left else text.rjust(widths[i])

    return "\n".join("  ".join(cell(i, text) for i, text in enumerate(line)).rstrip() for line in lines)


def millis(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"
