"""What all deployers can be told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace as changed
from typing import Any

from ..client.sync import Client
from ..container.input_type import parse
from .failure import DeployFailed

# Members of a version, as in the API: what defines one beside its bundle and its host, and what does not.
DEFINING = ("resources", "env", "driver", "artifacts", "secrets", "batch")
_OTHERS = ("labels", "scale", "hosted_by")
_OF_HOSTS = ("replicas", "scale", "resources", "env", "gpus", "gpu_memory", "driver", "artifacts", "secrets")
_LISTS = {"requirements": '["scikit-learn==1.5.2"]', "labels": '["nightly"]'}
_SLO = 0.0001, 600  # seconds, as the service has them in serving/app.go
_NAMES = {"ints": "integers"}  # of the API, where the SDK has others


@dataclass(frozen=True)
class Terms:
    """The keyword arguments that every deployer takes.

    - `version`: without it, the one that has the same bundle already, else the next number.
    - `replace`: with `version`, let that become something else where it is there with other content. Nothing that it
      answered is used any more, and queries wait for its new replicas.
    - `replace_contract`: with True the version may take inputs of another length than the current one, though apps use
      the model and their clients are refused then.
    - `keep_current`: True leaves the model's current version as it is, for this one to be made current later. `canary`
      is a share of the queries, as 0.1, that the app gives to this version, while the current one gets the others; a
      bad one is withdrawn by itself.
    - `requirements`: in place of those found out, by their names: `["scikit-learn==1.5.2"]`.
    - `check`: inputs, a table or list of them, for which the bundle has to answer as the model does here, beside the
      example; of a long table 40 rows. False for no such comparison.
    - `replicas`: how many; without it as many as there are, of a new version one. Or `scale={"min": 1, "max": 8}` for
      as many as demand needs.
    - `app`: the name of the app to register and link; True for the model's own name, False for none. One that exists
      is linked, and otherwise left as it is.
    - `slo`: seconds in which the app answers, 0.1 without it and 5 for chats. `default`: its answer where the model
      gave none in time.
    - `batch`, `resources`, `env`, `labels`: of the version, as in the API.
    - `gpus`: how many each replica has to itself, and `gpu_memory`: MiB of each at the least; `resources` in short. A
      model with `device="cuda"` gets one where neither says it.
    - `driver`, `artifacts`, `secrets`: of the version on a cluster, as in the API.
    - `hosted_by`: a model that `deploy_host` has made, whose replicas hold this one while it is asked. Then `replicas`,
      `scale`, `resources`, `env` and what is said of GPUs and of a cluster are the host's, and not to be given here.
    - `commit`: of the source, which the version shows; without it, the one that git has checked out in the current
      folder, with -dirty where files differ from it. "" for none.
    - `description`: a sentence for those who find the bundle later.
    - `client`: the client to use; by default one for this machine, or what TOPSAIL_URL and TOPSAIL_ADMIN_URL say.
    - `timeout`: seconds for all of it, the building of an environment included.
    - `progress`: False for silence, or a function that is given each line.
    """

    version: str | int | None = None
    replace: bool = False
    replace_contract: bool = False
    keep_current: bool = False
    canary: float | None = None
    requirements: Sequence[str] = ()
    check: Any = None
    replicas: int | None = None
    scale: Mapping[str, Any] | None = None
    app: bool | str = True
    slo: float | None = None
    default: Any = None
    batch: Mapping[str, Any] | None = None
    resources: Mapping[str, Any] | None = None
    env: Mapping[str, str] | None = None
    labels: Sequence[str] | None = None
    gpus: int | None = None
    gpu_memory: int | None = None
    driver: str | None = None
    artifacts: Sequence[Mapping[str, str]] | None = None
    secrets: Mapping[str, str] | None = None
    hosted_by: str | None = None
    commit: str | None = None
    description: str = ""
    client: Client | None = None
    timeout: float = 300.0
    progress: bool | Callable[[str], None] = True

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Terms:
        """It raises TypeError for what no deployer takes, and DeployFailed for what does not go together."""
        if unknown := given.keys() - cls.__dataclass_fields__.keys():
            raise TypeError(f"deployers do not take {min(unknown)!r}: they take {', '.join(cls.__dataclass_fields__)}")
        terms = cls(**given)
        terms._check_kinds()
        if terms.replace and terms.version is None:
            raise DeployFailed("replace is for a version that is named: give version=, or leave replace out")
        terms.default_output()
        if terms.slo is not None and not (type(terms.slo) in (int, float) and _SLO[0] <= terms.slo <= _SLO[1]):
            raise DeployFailed(f"slo={terms.slo!r} cannot be an objective: give seconds, from {_SLO[0]} to {_SLO[1]}")
        if terms.canary is not None and not (0 < terms.canary < 1 and terms.app):
            raise DeployFailed(f"canary is {terms.canary!r}: give the share of the app's queries, as 0.1")
        if terms.hosted_by and (mine := [name for name in _OF_HOSTS if getattr(terms, name) is not None]):
            raise DeployFailed(f"{mine[0]} is the host's where a model is hosted_by another: leave it out")
        if terms.gpu_memory is not None and not terms._gpu().get("count"):
            raise DeployFailed("gpu_memory is of each GPU: say how many with gpus=")
        return terms

    def _check_kinds(self) -> None:
        """Whether each is of its kind: what is not fails where no one would look for it."""
        for name in ("requirements", "labels"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise DeployFailed(f"{name} is one text: give a list, [{value!r}]")
            if value is not None and (isinstance(value, Mapping) or not all(isinstance(x, str) for x in value)):
                raise DeployFailed(f"{name}={value!r} is no list of texts: give one, as {_LISTS[name]}")
        for name in ("batch", "resources", "env", "scale", "secrets"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                raise DeployFailed(f"{name}={value!r} is no dict: give its members by name, as in the API")
        if self.client is not None and not isinstance(self.client, Client):
            raise DeployFailed(f"client={self.client!r} is no client: give topsail.Client(url=…, admin_url=…)")
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, (int, float)) or self.timeout <= 0:
            raise DeployFailed(f"timeout={self.timeout!r} is no time: give seconds, more than 0")

    def with_gpu(self) -> Terms:
        """The same with a GPU for each replica, where nothing is said of any."""
        return self if self.hosted_by or self._gpu() else changed(self, gpus=1)

    def _gpu(self) -> dict[str, Any]:
        short = {"count": self.gpus, "memory_mb": self.gpu_memory}
        return dict((self.resources or {}).get("gpu") or {}) | {k: v for k, v in short.items() if v is not None}

    def of_version(self) -> dict[str, Any]:
        """The members of a version that are said here."""
        members = {k: getattr(self, k) for k in DEFINING + _OTHERS}
        if gpu := self._gpu():
            members["resources"] = {**(self.resources or {}), "gpu": gpu}
        plain = {k: v for k, v in members.items() if v is not None}
        if self.scale is not None or self.hosted_by:
            return plain
        return plain | {"replicas": 1 if self.replicas is None else self.replicas}

    def default_output(self) -> str:
        """The app's default as its text. It raises DeployFailed."""
        value = self.default.tolist() if hasattr(self.default, "tolist") else self.default
        try:
            return value if isinstance(value, str) else json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as e:
            raise DeployFailed(f"default={self.default!r} cannot be an answer: {e}") from None

    @property
    def stays(self) -> bool:
        """Whether the current version stays that."""
        return self.keep_current or self.canary is not None

    @property
    def wanted(self) -> int:
        """How many replicas are waited for. What is hosted has none of its own."""
        if self.hosted_by:
            return 0
        if self.scale is not None:
            return int(self.scale.get("min", 1))
        return 1 if self.replicas is None else self.replicas


def api_input_type(name: str) -> str:
    """The API's name of an input type. It raises DeployFailed for one that is unknown."""
    try:
        own = parse(name).name
    except ValueError as e:
        raise DeployFailed(str(e)) from None
    return _NAMES.get(own, own)
