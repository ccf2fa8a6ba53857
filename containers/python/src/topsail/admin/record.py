"""What the management service says of things, as objects with attributes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from ..client_http import Answer

R = TypeVar("R", bound="Record")


@dataclass(repr=False)
class Record:
    """Attributes are the members of the JSON, None where a member is absent; `more` has those that this version of the
    client does not know. `etag` is what was read: a change made with the record happens only if nobody else has
    changed the object since."""

    read_only: ClassVar[frozenset[str]] = frozenset()  # members that are said and never sent

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
        said = ", ".join(f"{k}={v!r}" for k, v in self.to_dict().items())
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
class Rehearsal(Record):
    """What a change would do, which was asked with dry_run=True."""

    dry_run: bool = True
    changes: list[dict[str, Any]] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)  # sentences


@dataclass(repr=False)
class App(Record):
    read_only: ClassVar[frozenset[str]] = frozenset({"origin"})

    name: str
    input_type: str
    latency_slo_micros: int
    description: str | None = None
    default_output: str | None = None
    models: list[str] | None = None
    stages: list[dict[str, Any]] | None = None
    policy: dict[str, Any] | None = None
    output_type: str | None = None
    weight: float | None = None
    cache: dict[str, Any] | None = None
    cold_start_micros: int | None = None
    example: str | None = None
    require_key: bool | None = None
    limit: dict[str, Any] | None = None
    labels: list[str] | None = None
    origin: str | None = None


@dataclass(repr=False)
class Model(Record):
    name: str
    current: str = ""
    serving: str = ""
    previous: str | None = None
    input_type: str | None = None
    versions: list[str] = field(default_factory=list)
    apps: list[str] = field(default_factory=list)


@dataclass(repr=False)
class Version(Record):
    read_only: ClassVar[frozenset[str]] = frozenset(
        {"pin", "origin", "generation", "deployed", "current", "serving", "used_by", "example", "performance"}
    )

    version: str
    model: str | None = None
    description: str | None = None
    input_type: str | None = None
    input_length: int | None = None
    replicas: int | None = None
    scale: dict[str, Any] | None = None
    bundle: str | None = None
    image: str | None = None
    command: list[str] | None = None
    labels: list[str] | None = None
    batch: dict[str, Any] | None = None
    stages: list[dict[str, Any]] | None = None
    host: dict[str, Any] | None = None
    hosted_by: str | None = None
    resources: dict[str, Any] | None = None
    env: dict[str, str] | None = None
    prepared: bool | None = None
    pin: dict[str, Any] | None = None
    origin: str | None = None
    generation: str | None = None
    deployed: dict[str, Any] | None = None  # by whom, at what time, with what client, of which commit
    current: bool | None = None
    serving: bool | None = None
    used_by: list[str] | None = None
    example: str | None = None
    performance: dict[str, Any] | None = None  # p50_micros, p99_micros, throughput, errors, …


@dataclass(repr=False)
class Replica(Record):
    """Times are in microseconds."""

    id: str
    model: str
    version: str
    state: str  # starting, ready, ejected, draining, failed or stopped
    reason: str | None = None
    node: str | None = None
    allocation: str | None = None
    pid: int | None = None
    restarts: int | None = None
    since: str | None = None
    in_flight: int | None = None
    latency_micros: int | None = None
    queue_length: int | None = None
    wait_micros: int | None = None
    batch_limit: int | None = None
    batch_mean: float | None = None
    answers: int | None = None
    profile: list[dict[str, int]] | None = None
    stages: list[dict[str, Any]] | None = None


@dataclass(repr=False)
class Artifact(Record):
    digest: str
    size: int  # bytes
    created: str
    manifest: dict[str, Any]
    used_by: list[str] = field(default_factory=list)  # MODEL:VERSION


@dataclass(repr=False)
class Stream(Record):
    """`suspension` says since when the stream takes nothing, by whose word and why; None where it takes records. `now`
    is how it is where it is served: processes, lag_records, waiting_seconds and conditions; None where no process
    serves it."""

    name: str
    kind: str  # data or model
    input: list[str]
    output: str
    dead_letter: str
    app: str | None = None  # that predicts the records of a data stream
    suspension: dict[str, Any] | None = None
    now: dict[str, Any] | None = None


@dataclass(repr=False)
class Key(Record):
    """`secret` is there once, when the key is made."""

    id: str
    name: str
    role: str
    created: str | None = None
    apps: list[str] | None = None
    expires: str | None = None
    limit: dict[str, Any] | None = None
    secret: str | None = None

    def __repr__(self) -> str:
        """Without the secret: notebooks keep what they show."""
        shown = {k: v for k, v in self.to_dict().items() if k != "secret"}
        return f"Key({', '.join(f'{k}={v!r}' for k, v in shown.items())}{', secret=…' if self.secret else ''})"


@dataclass(repr=False)
class Decision(Record):
    model: str
    version: str
    at: str
    rule: str
    reason: str
    outcome: str
    error: str | None = None
    leader: str | None = None
    fence: int | None = None

    @property
    def before(self) -> int:
        """The number of replicas that there were."""
        return int(self.more["from"])

    @property
    def after(self) -> int:
        """The number of replicas that there were to be."""
        return int(self.more["to"])


@dataclass(repr=False)
class AuditEntry(Record):
    id: str
    at: str
    who: str
    action: str
    kind: str
    name: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    revision: int | None = None

    @property
    def address(self) -> str:
        """Of the client that made the change; empty if it is not known."""
        return str(self.more.get("from", ""))


@dataclass(repr=False)
class Usage(Record):
    """What came of an app or a version since it was registered. Times are in microseconds."""

    kind: str  # app or version
    usage: int
    cached: int
    failed: int
    missed: int
    total_micros: int
    app: str | None = None
    model: str | None = None
    version: str | None = None
    description: str | None = None
    policy: str | None = None
    latency_slo_micros: int | None = None
    candidates: list[str] | None = None
    since: str | None = None
    mean_micros: float | None = None
    min_micros: int | None = None
    max_micros: int | None = None
    last_failure: dict[str, Any] | None = None
    stages: list[dict[str, Any]] | None = None


@dataclass(repr=False)
class VersionStages(Record):
    """Where the time goes in a version with stages; `stages` is empty where the model is one piece."""

    model: str
    version: str
    at: str
    window_seconds: int  # that are known of what was asked for
    stages: list[dict[str, Any]]
    bottleneck: str | None = None


@dataclass(repr=False)
class Said(Record):
    """What has no fixed members here: each member of the JSON is an attribute."""

    def __getattr__(self, name: str) -> Any:
        more = self.__dict__.get("more", {})
        if name not in more:
            raise AttributeError(f"there is no {name!r}; there is {', '.join(more) or 'nothing'}")
        return more[name]


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
