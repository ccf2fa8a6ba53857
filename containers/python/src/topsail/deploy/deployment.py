"""A version that is deployed."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from ..client.admin.record import App, Replica
from ..client.answers import Prediction
from ..client.errors import BadRequest, Conflict, NotFound
from ..client.sync import Client
from ..container.input_type import BYTES, STRINGS, TENSORS
from ..container.signature import flat
from .failure import DeployFailed
from .named import sent


class Deployment:
    """A handle of a version of a model, and of the app that asks it."""

    def __init__(self, client: Client, model: str, version: str, app: str | None) -> None:
        self.client, self.model, self.version, self.app = client, model, version, app
        self._asked: App | None = None  # as it was looked up once

    def predict(self, input: Any, **options: Any) -> Prediction:
        """Asks this version through the app, as Client.predict does; an app that asks several models chooses by its
        policy. An input of several dimensions is sent flat; inputs with names are a dict, or a row of pandas."""
        if self.app is None:
            raise DeployFailed(f"{self.model} was deployed without an app: link it to one, and ask that")
        self._asked = self._asked or self.client.apps.get(self.app)
        if self._asked.models == [self.model]:
            options.setdefault("version", self.version)
        if self._asked.input_type == TENSORS.name:
            named = (self._asked.signature or {}).get("inputs", [])
            return self.client.predict(self.app, sent(input, named), **options)
        if self._asked.input_type == STRINGS.name and isinstance(input, (bytes, bytearray, memoryview)):
            raise BadRequest("the model takes texts, and the input is bytes: decode them, as input.decode()")
        if self._asked.input_type == BYTES.name and isinstance(input, str):
            raise BadRequest("the model takes bytes, and the input is a text: encode it, as input.encode()")
        if len(getattr(input, "shape", ())) > 1:
            input = input.reshape(-1)
        elif isinstance(input, (list, tuple)) and any(isinstance(x, (list, tuple)) for x in input):
            input = flat(input)[1]
        return self.client.predict(self.app, input, **options)

    @property
    def replicas(self) -> list[Replica]:
        """As they are now."""
        return list(self.client.replicas.list(self.model, self.version))

    def logs(self, lines: int = 100) -> str:
        """The last lines of every replica."""
        found = self.replicas
        texts = ["\n".join(self.client.replicas.logs(r, lines=lines)) for r in found]
        if len(found) == 1:
            return texts[0]
        return "\n".join(f"== {r.id}, {r.state}\n{text}" for r, text in zip(found, texts, strict=True))

    def follow(self) -> Iterator[str]:
        """What a replica says, line by line, as it says it; the first of several."""
        found = self.replicas
        if not found:
            raise NotFound(f"{self.model}:{self.version} has no replica")
        return self.client.replicas.logs(found[0], follow=True)

    def scale(self, replicas: int) -> None:
        """Sets the number of replicas."""
        self.client.versions.scale(self.model, self.version, replicas)

    def rollback(self, version: str | None = None) -> Deployment:
        """Makes the version current that was so before, or the one that is named, and returns it. It raises Conflict
        for the former if this one is not current: that would take back another one."""
        if version is None and (current := self.client.models.get(self.model).current) != self.version:
            raise Conflict(f"{self.model}:{self.version} is not current, and {current} is: name a version")
        model = self.client.models.rollback(self.model, version)
        return Deployment(self.client, self.model, model.current, self.app)  # type: ignore[union-attr]

    def delete(self) -> None:
        """Deletes the version. With the last version go the model and the app, if that asks no other model. It raises
        Conflict while the version is the current one of several: roll back first."""
        model = self.client.models.get(self.model)
        if model.versions != [self.version]:
            if model.current == self.version:
                raise Conflict(f"{self.model}:{self.version} is the current version: roll back, and delete it then")
            self.client.versions.delete(self.model, self.version)
            return
        for name in model.apps:
            self._take_from(name)
        self.client.models.delete(self.model)

    def _take_from(self, name: str) -> None:
        if name == self.app and self.client.apps.get(name).models == [self.model]:
            self.client.apps.delete(name)
        else:
            self.client.apps.unlink(name, self.model)

    def _said(self) -> list[tuple[str, str]]:
        ready = [r.state for r in self.replicas]
        app = f"{self.client.url}/{self.app}/predict" if self.app else "none"
        return [
            ("model", self.model),
            ("version", self.version),
            ("app", app),
            ("replicas", f"{ready.count('ready')} of {len(ready)} ready"),
        ]

    def __repr__(self) -> str:
        asked = f", app {self.app!r}" if self.app else ""
        return f"<Deployment {self.model}:{self.version}{asked}>"

    def _repr_html_(self) -> str:
        cells = (f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self._said())
        return f"<table>{''.join(cells)}</table>"
