"""Memory that the sidecar shares with a container on its machine, and writes large frames into."""

from __future__ import annotations

import mmap
import os
import sys

from ..protocol.errors import ProtocolError
from ..protocol.frame import Frame
from ..protocol.memory import Memory, Shared

SUPPORTED = sys.platform == "linux"


class SharedMemory:
    """The slots of the memory. One is in use from when a frame is in it to when no view of that is left, such as of an
    input that a model keeps."""

    def __init__(self, memory: Memory) -> None:
        """It raises OSError where this process cannot open the memory, such as in a container of its own."""
        if os.readlink(memory.path) != memory.link:
            raise FileNotFoundError(f"{memory.path} is not the sidecar's memory")
        file = os.open(memory.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(file).st_size < memory.slots * memory.size:
                raise OSError(f"{memory.path} is smaller than the sidecar says")
            # A map for each, which knows whether there are views of it.
            self._slots = [
                mmap.mmap(file, memory.size, access=mmap.ACCESS_READ, offset=i * memory.size)
                for i in range(memory.slots)
            ]
        finally:
            os.close(file)
        view = memoryview(self._slots[0])
        if _unused(self._slots[0]):  # on a Python where maps do not know, slots would be free too early
            raise OSError("maps of this Python do not say whether there are views of them")
        view.release()
        self._used = set(range(memory.slots))  # as long as the sidecar has not heard that they are free

    def frame(self, shared: Shared) -> Frame:
        """The frame that is in a slot."""
        if shared.slot >= len(self._slots) or shared.slot in self._used or shared.size > len(self._slots[shared.slot]):
            raise ProtocolError("shared slot", 4, f"{shared.size} bytes cannot be in slot {shared.slot}")
        body = memoryview(self._slots[shared.slot])[: shared.size]
        self._used.add(shared.slot)  # when there is a view of it
        return Frame(shared.kind, shared.flags, body)

    def free(self) -> list[int]:
        """The slots that are not in use any more. The sidecar may write to them when it has heard so."""
        slots = [slot for slot in tuple(self._used) if _unused(self._slots[slot])]
        self._used.difference_update(slots)
        return slots


def _unused(m: mmap.mmap) -> bool:
    """Whether no view of it is left, which a map asks first when its size is to be changed. One that is read-only
    refuses the change in any case."""
    try:
        m.resize(len(m))
    except BufferError:
        return False
    except (TypeError, ValueError, OSError, SystemError):
        pass
    return True
