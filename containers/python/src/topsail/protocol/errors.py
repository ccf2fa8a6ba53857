"""What goes wrong with bytes from the other side."""

from __future__ import annotations


class ProtocolError(Exception):
    """The other side broke the protocol: in which field, at which byte of the frame's body, and how."""

    def __init__(self, field: str, offset: int, problem: str) -> None:
        super().__init__(f"{field} at byte {offset}: {problem}")
        self.field = field
        self.offset = offset
