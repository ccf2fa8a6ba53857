"""All that a host has loaded."""

from __future__ import annotations

from ..container.batch import Batch
from ..container.connection import Connection
from ..protocol.load import Load
from .hosted_model import HostedModel


class HostedModels:
    """A table by id, which the main thread reads and the loader's writes: each step is one of a dict, which are whole
    by themselves."""

    def __init__(self) -> None:
        self._by_id: dict[int, HostedModel] = {}

    def add(self, hosted: HostedModel) -> None:
        self._by_id[hosted.id] = hosted

    def answer(self, batch: Batch) -> None:
        """Runs the batch on the model it is for. Ids of an earlier connection mean nothing on this one."""
        hosted = self._by_id.get(batch.predict.model)
        if hosted and hosted.connection is batch.connection:
            hosted.answer(batch)
        else:
            batch.answer(None)

    def of(self, asked: Load, connection: Connection) -> HostedModel | None:
        """The same version, if it is there already."""
        same = (m for m in self._by_id.values() if m.asked[:2] == asked[:2] and m.connection is connection)
        return next(same, None)

    def close(self, id: int, connection: Connection) -> HostedModel | None:
        """Lets go of one, and returns it if it was there."""
        hosted = self._by_id.get(id)
        if not hosted or hosted.connection is not connection:
            return None
        del self._by_id[id]
        hosted.close()
        return hosted

    def close_all(self, connection: Connection | None = None) -> list[HostedModel]:
        """The same for all, or those of one connection."""
        models = [m for m in list(self._by_id.values()) if connection is None or m.connection is connection]
        for hosted in models:
            self.close(hosted.id, hosted.connection)
        return models
