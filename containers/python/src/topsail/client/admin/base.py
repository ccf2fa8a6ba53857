"""What all records have in common."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from ..http import Answer

R = TypeVar("R", bound="Record")


@dataclass(repr=False)
class Record:
    """Attributes are the members of the JSON, None where a member is absent; `more` has those that this version of the
    client does not know. `etag` is what was read: a change made with the record happens only if no other client has
    changed the object since."""

    read_only: ClassVar[frozenset[str]] = frozenset()  # members that are said and never sent
    hidden: ClassVar[frozenset[str]] = frozenset()  # members that are not shown: notebooks keep what they show

    etag: str | None = field(default=None, kw_only=True, compare=False)
    more: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """The members that there are."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("etag", "more")}
        return {k: v for k, v in own.items() if v is not None} | self.more

    def to_send(self) -> dict[str, Any]:
        """The members that one may change."""
        return {k: v for k, v in self.to_dict().items() if k not in self.read_only}

    def __repr__(self) -> str:
        said = ", ".join(f"{k}={'…' if k in self.hidden else repr(v)}" for k, v in self.to_dict().items())
        return f"{type(self).__name__}({said})"

    @classmethod
    def of(cls: type[R], members: dict[str, Any], etag: str | None = None) -> R:
        known = {f.name for f in fields(cls)} - {"etag", "more"}
        more = {k: v for k, v in members.items() if k not in known}
        return cls(**{k: v for k, v in members.items() if k in known}, etag=etag, more=more)

    @classmethod
    def read(cls: type[R], answer: Answer) -> R:
        return cls.of(json.loads(answer.body), answer.etag)


@dataclass(repr=False)
class Said(Record):
    """What has no fixed members here: each member of the JSON is an attribute."""

    def __getattr__(self, name: str) -> Any:
        more = self.__dict__.get("more", {})
        if name not in more:
            raise AttributeError(f"there is no {name!r}; there is {', '.join(more) or 'nothing'}")
        return more[name]
