"""Whether anything waits to be received."""

from __future__ import annotations

import select


def quiet(file: int) -> bool:
    """Whether nothing has come on a socket, not even its end."""
    if not hasattr(select, "poll"):  # as on Windows, where select takes any socket
        return not select.select([file], [], [], 0)[0]
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return not poll.poll(0)
