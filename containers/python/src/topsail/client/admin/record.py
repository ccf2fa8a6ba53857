"""What the management service says of things, as objects with attributes."""

# Written by tools/records.py from web/api/openapi.yaml: change that, and run `make generate`.

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from .base import Record, Said

__all__ = [
    "App",
    "Artifact",
    "AuditEntry",
    "Decision",
    "DryRun",
    "Key",
    "Model",
    "ModelChange",
    "Record",
    "Replica",
    "Said",
    "Stream",
    "Usage",
    "Version",
    "VersionStages",
]


@dataclass(repr=False)
class DryRun(Record):
    """What a change would do, requested with dry_run=true."""

    changes: list[dict[str, Any]]  # {action, kind, name, before, after}
    effects: list[str]  # what it means beyond that, in sentences: for the apps that ask a model, and for replicas

    _: KW_ONLY
    dry_run: bool = True


@dataclass(repr=False)
class App(Record):
    """What clients query: an input type, an objective, the models that answer and how the policy chooses among them."""

    read_only: ClassVar[frozenset[str]] = frozenset({"origin"})

    name: str  # the name in the path of queries
    # bytes, integers, floats, doubles, strings, tensors or chat: tensors are those of a signature; chat is a request of
    # OpenAI's API, as an object; also written byte, b, int, ints, integer, i, float, f, double, d, string, str, strs, s
    input_type: str
    latency_slo_micros: int

    _: KW_ONLY
    description: str | None = None  # for people; of at most 1,000 bytes
    # {inputs, outputs}: Named inputs and outputs. With inputs, input_type is tensors; without them the input is the one
    # of input_type.
    signature: dict[str, Any] | None = None
    # the answer when no model gave one in time; nested as JSON where it is valid JSON
    default_output: str | None = None
    cold_start_micros: int | None = None
    models: list[str] | None = None  # linked models, in the order of linking
    # {name, model, app, after}: instead of models: the stages that are called one after another, each with the outputs
    # of those before it; the last one answers
    stages: list[dict[str, Any]] | None = None
    # number, label, vector or json: what the policy takes outputs for; empty: what it takes first
    output_type: str | None = None
    # {kind, model, models, order, most, costs, by_cost, weights, canary, share, ramp_seconds, sticky, min_answers,
    # max_failures, max_loss, loss, scale, scope, epsilon, gamma, eta, mixing, discount, alpha, features, agreement,
    # confidence, qualifier, within_micros, fallback, record_seconds}: The selection policy with its options, as in the
    # file's [app.policy]. x-kinds has the options of each kind, beside those that every kind has: kind, loss, scale,
    # costs and record_seconds. An option that is 0, false or empty is not given.
    policy: dict[str, Any] | None = None
    weight: float | None = None
    # 0 is the highest: queries of a lower one get what higher ones leave. A key or a query can only ask for a lower one
    priority: int | None = None
    # the part of the capacity of a model that the app gets even where higher priorities want all of it
    min_share: float | None = None
    cache: dict[str, Any] | None = None  # {off, round, ttl_micros}
    example: str | None = None  # an input as JSON
    require_key: bool | None = None  # queries need a key that may query this app
    slo_between_micros: int | None = None  # of an answer in parts: time from one part to the next; 0 is 10 s
    slo_total_micros: int | None = None  # of an answer in parts: time to its end; 0 is 10 minutes
    # prefix: which replica is asked: empty, the one with the shortest wait; prefix, the one that was asked last about
    # an input that begins alike, for engines that cache prompts
    route: str | None = None
    share_streams: bool | None = None  # equal queries in flight share one answer in parts
    # clients of the Open Inference Protocol and of OpenAI get an error in place of the default output
    default_errors: bool | None = None
    limit: dict[str, Any] | None = None  # {per_second, burst}
    labels: list[str] | None = None
    origin: str | None = None  # file, apply or api


@dataclass(repr=False)
class Model(Record):
    """The versions of one model, of which one is current. A model exists while it has a version."""

    read_only: ClassVar[frozenset[str]] = frozenset(
        {"current", "serving", "previous", "input_type", "versions", "apps"}
    )

    name: str

    _: KW_ONLY
    current: str = ""  # the wanted version; empty for none
    serving: str = ""  # the last current version that had a ready replica, where queries go; empty for none
    previous: str | None = None  # the previous current version, to which a rollback returns
    # bytes, integers, floats, doubles, strings, tensors or chat: tensors are those of a signature; chat is a request of
    # OpenAI's API, as an object; also written byte, b, int, ints, integer, i, float, f, double, d, string, str, strs, s
    input_type: str | None = None
    versions: list[str] = field(default_factory=list)
    apps: list[str] = field(default_factory=list)  # apps that link it


@dataclass(repr=False)
class Version(Record):
    """A version of a model: what runs, and how many replicas of it. It is immutable, but for its number of replicas."""

    read_only: ClassVar[frozenset[str]] = frozenset(
        {"pin", "origin", "generation", "deployed", "current", "serving", "used_by", "example", "performance"}
    )

    version: str

    _: KW_ONLY
    model: str | None = None
    description: str | None = None  # for people; of at most 1,000 bytes
    # bytes, integers, floats, doubles, strings, tensors or chat: tensors are those of a signature; chat is a request of
    # OpenAI's API, as an object; also written byte, b, int, ints, integer, i, float, f, double, d, string, str, strs, s
    input_type: str | None = None
    input_length: int | None = None
    # {inputs, outputs}: Named inputs and outputs. With inputs, input_type is tensors; without them the input is the one
    # of input_type.
    signature: dict[str, Any] | None = None
    # the model gets the user, the context and the time left of each query; answers are cached for each user and context
    session: bool | None = None
    labels: list[str] | None = None
    replicas: int | None = None
    # {min, max, metric, target, utilisation, idle_micros, step_up, step_down, cooldown_up_micros, cooldown_down_micros,
    # dead_band}
    scale: dict[str, Any] | None = None
    pin: dict[str, Any] | None = None  # {count, until, reason}
    batch: dict[str, Any] | None = None  # {strategy, max_size, delay_micros, pad}
    # {name, after, code, workers, cpus, cpus_per_worker, batch, max_queue, idempotent}: the stages that its command or
    # bundle runs, which gets them in TOPSAIL_STAGES; of a program that defines its own stages, how the named ones run
    stages: list[dict[str, Any]] | None = None
    # {memory_mb}: makes it a host, whose container holds versions of other models; it has no input_type
    host: dict[str, Any] | None = None
    # the model whose replicas load this version, instead of replicas of its own; it needs a bundle
    hosted_by: str | None = None
    # {name, addrs, protocol, model, model_version, api_key_file, ready_path, concurrency}: makes it a service that
    # others run, whose instances gateways call; it has a name or addrs, and nothing to run
    service: dict[str, Any] | None = None
    resources: dict[str, Any] | None = None  # {cpu, cores, memory_mb, gpu}
    bundle: str | None = None  # digest of the bundle to run, sha256:…
    # where nodes fetch it, if not from the management service; a password and the query are hidden from viewers and
    # operators
    bundle_url: str | None = None
    command: list[str] | None = None
    dir: str | None = None
    env: dict[str, str] | None = None  # hidden from viewers and operators
    watch: list[str] | None = None
    container_addr: str | None = None  # of a container of version 1 that already listens
    # v1 or v2: v1 for a container that listens, at container_addr; or it is started, and listens on the port that the
    # variable PORT says, or where ${PORT} stands in command or env
    protocol: str | None = None
    container_port: int | None = None  # of an image of version 1 that always listens on the same port: that port
    connections: int | None = None  # to a container of version 1, with a batch in flight on each; 0 is 1
    driver: str | None = None  # raw_exec, exec or docker
    image: str | None = None
    artifacts: list[dict[str, Any]] | None = None  # {source, checksum, destination}
    secrets: dict[str, str] | None = None
    # made ahead of its registration by Clipper's add_model, which completes it; until then it is not current
    prepared: bool | None = None
    origin: str | None = None  # file, apply or api
    generation: str | None = None  # changes whenever its answers may have changed
    # {by, at, client, commit}: Where a version comes from: the deployment that made its generation.
    deployed: dict[str, Any] | None = None
    current: bool | None = None
    serving: bool | None = None
    used_by: list[str] | None = None  # apps whose queries it may get
    example: str | None = None  # an input as JSON, from the bundle's manifest
    # {since, answers, errors, batches, batch_mean, p50_micros, p99_micros, throughput}: What the replicas of this
    # generation of a version did, including replicas that have ended; in answers about versions. Absent while nothing
    # is measured, and for hosted versions. For versions with stages only answers and errors: see /stages.
    performance: dict[str, Any] | None = None


@dataclass(repr=False)
class Replica(Record):
    """A running copy of a version."""

    id: str
    model: str
    version: str
    state: str  # ready, starting, ejected, draining, failed or stopped

    _: KW_ONLY
    reason: str | None = None  # why it is not ready: how its container ended, with what it said last
    node: str | None = None
    allocation: str | None = None
    pid: int | None = None
    restarts: int | None = None
    since: str | None = None  # when its process started
    # cores that its container uses, of the last seconds; it and the next two are absent where they are not known
    cpu: float | None = None
    memory_bytes: int | None = None  # memory of its container
    gpu_memory_bytes: int | None = None  # memory of GPUs that its container has
    in_flight: int | None = None
    latency_micros: int | None = None  # moving average of its answers
    queue_length: int | None = None
    wait_micros: int | None = None  # how long a new query would wait for its batch
    batch_limit: int | None = None
    batch_mean: float | None = None
    answers: int | None = None  # since it started
    profile: list[dict[str, Any]] | None = None  # {size, micros}: estimated time of a batch by its size
    # {stage, after, workers, ready, waiting, rate, busy, batch_mean, wait_micros, wait_p99_micros, run_micros,
    # run_p99_micros, ended}: in the last minute; in answers about one replica of a model with stages
    stages: list[dict[str, Any]] | None = None


@dataclass(repr=False)
class Artifact(Record):
    """A bundle, where versions find it."""

    read_only: ClassVar[frozenset[str]] = frozenset({"used_by"})

    digest: str
    size: int  # bytes
    created: str
    # {format, runtime, python, requirements, entry, input_type, input_length, signature, example, description, options,
    # command, files}
    manifest: dict[str, Any]

    _: KW_ONLY
    used_by: list[str] = field(default_factory=list)  # MODEL:VERSION


@dataclass(repr=False)
class Stream(Record):
    """A stream of records or of models that processes have announced."""

    name: str
    kind: str  # data or model
    input: list[str]
    output: str
    dead_letter: str

    _: KW_ONLY
    app: str | None = None  # the app that predicts the records of a data stream
    # the apps of records that name something, such as a type of data: those set at runtime, which take precedence over
    # the configuration; several apps, between commas, have a result each
    apps: dict[str, str] | None = None
    # {since, by, reason}: since when it is suspended, by which key and why; absent while it is not
    suspension: dict[str, Any] | None = None
    # {processes, lag_records, waiting_seconds, conditions}: The state of a stream in the processes that serve it.
    # Absent while no known process serves it.
    now: dict[str, Any] | None = None


@dataclass(repr=False)
class Key(Record):
    """A key for requests, without its secret, which only the answer that created it contains."""

    read_only: ClassVar[frozenset[str]] = frozenset({"created", "secret"})
    hidden: ClassVar[frozenset[str]] = frozenset({"secret"})

    id: str
    name: str
    role: str  # query, viewer, operator, deployer or admin: from viewer on, each role includes the ones before it

    _: KW_ONLY
    apps: list[str] | None = None  # for these apps only; absent: all apps
    created: str = ""
    expires: str | None = None
    limit: dict[str, Any] | None = None  # {per_second, burst}
    priority: int | None = None  # the highest that its queries can have; 0 is the highest of all
    secret: str | None = None  # only in the answer that creates the key


@dataclass(repr=False)
class Decision(Record):
    """A decision of the scheduler on a version, and its outcome."""

    model: str
    version: str
    at: str
    rule: str
    reason: str
    outcome: str

    _: KW_ONLY
    error: str | None = None
    leader: str | None = None
    fence: int | None = None

    @property
    def before(self) -> int:
        """The number of replicas before."""
        return int(self.more["from"])

    @property
    def after(self) -> int:
        """The wanted number of replicas."""
        return int(self.more["to"])


@dataclass(repr=False)
class AuditEntry(Record):
    """A change that was made."""

    id: str
    at: str
    # name of the key; file for the configuration file, scheduler for the scheduler, local where there are no keys
    who: str
    action: str  # create, update, delete, restart, drain, upload, forget, backup, restore, recover
    kind: str  # app, model, version, replica, artifact, backup, key, learned, stream or role
    name: str

    _: KW_ONLY
    client: str | None = None  # the program that asked for it, as it names itself
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    revision: int | None = None  # of the catalog with it

    @property
    def address(self) -> str:
        """Address of the client that made the change, where it is known."""
        return str(self.more.get("from", ""))


@dataclass(repr=False)
class ModelChange(Record):
    """A step in the history of a model."""

    id: str
    at: str
    action: str  # registered, removed, promoted, rolled_back or deleted: with deleted went the model, with its versions
    who: str  # name of the key; file, scheduler or local as in the audit log

    _: KW_ONLY
    version: str | None = None
    before: str | None = None  # the version that was current before
    client: str | None = None  # the program that asked for it, as it names itself

    @property
    def address(self) -> str:
        """Address of the client."""
        return str(self.more.get("from", ""))


@dataclass(repr=False)
class Usage(Record):
    """The results of an app or a version since it was registered. Each request and query counts once, however often it
    was retried. A gateway that is killed loses the counts of its last second."""

    kind: str  # app or version
    # of a model or stage, its outputs, one for each request however often that was retried; of an app, the answers to
    # queries, including defaults
    usage: int
    # outputs from the cache, or from an equal request in flight; of an app, answers made only of such outputs, which
    # usage includes
    cached: int
    failed: int  # of a model or stage, requests that ended with an error of it or its container; of an app, defaults
    # requests to a model that ended without an output and without an error: refused, too late, cancelled, dropped by a
    # stage, or no replica
    missed: int
    total_micros: int  # the total time of usage, from request to answer

    _: KW_ONLY
    app: str | None = None
    model: str | None = None
    version: str | None = None
    description: str | None = None
    # of an app: the policy that decides; stages where its models are called one after another
    policy: str | None = None
    latency_slo_micros: int | None = None  # of an app: the time for a decision
    # of an app: the models that can be called, and the versions that its policy names
    candidates: list[str] | None = None
    # when it was registered; absent if a release without usage registered it and nothing has been counted yet
    since: str | None = None
    # {usage, cached, failed, missed, total_micros, mean_micros, min_micros, max_micros, last_failure, stage, model,
    # app}
    stages: list[dict[str, Any]] | None = None
    mean_micros: float | None = None
    min_micros: int | None = None
    max_micros: int | None = None
    last_failure: dict[str, Any] | None = None  # {at, cause, message}: the last of failed


@dataclass(repr=False)
class VersionStages(Record):
    """Where the time of queries goes in a version with stages."""

    model: str
    version: str
    at: str
    window_seconds: int  # seconds of the requested window that are known; 0: only the stages are known
    # {stage, after, workers, ready, waiting, rate, busy, batch_mean, wait_micros, wait_p99_micros, run_micros,
    # run_p99_micros, ended}
    stages: list[dict[str, Any]]

    _: KW_ONLY
    # the stage that bounds what the others can do: the first without a ready worker, or else the one whose workers are
    # busiest; absent where none is busy
    bottleneck: str | None = None
