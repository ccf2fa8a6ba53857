"""All that a host has loaded."""

from __future__ import annotations

from ..connection import Connection
from ..inbox import Job
from ..wire.load import Load
from .guest import Guest


class Guests:
    """A table by id, which the main thread reads and the loader's writes: each step is one of a dict, which are whole
    by themselves."""

    def __init__(self) -> None:
        self._by_id: dict[int, Guest] = {}

    def add(self, guest: Guest) -> None:
        self._by_id[guest.id] = guest

    def answer(self, job: Job) -> None:
        """Runs the batch on the model it is for. Ids of an earlier connection mean nothing on this one."""
        guest = self._by_id.get(job.batch.model)
        if guest and guest.connection is job.connection:
            guest.answer(job)
        else:
            job.answer(None)

    def of(self, asked: Load, connection: Connection) -> Guest | None:
        """The same version, if it is there already."""
        same = (g for g in self._by_id.values() if g.asked[:2] == asked[:2] and g.connection is connection)
        return next(same, None)

    def close(self, id: int, connection: Connection) -> Guest | None:
        """Lets go of one, and returns it if it was there."""
        guest = self._by_id.get(id)
        if not guest or guest.connection is not connection:
            return None
        del self._by_id[id]
        guest.close()
        return guest

    def close_all(self, connection: Connection | None = None) -> list[Guest]:
        """The same for all, or those of one connection."""
        guests = [g for g in list(self._by_id.values()) if connection is None or g.connection is connection]
        for guest in guests:
            self.close(guest.id, guest.connection)
        return guests
