"""From a bundle to a version that is ready."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from ..bundle import ALONE, Bundle
from ..client.admin.record import App, Artifact, Replica, Version
from ..client.deadline import Deadline
from ..client.errors import Conflict, NotFound, Timeout, TopsailError, Unavailable
from ..client.sync import Client
from ..runtime.folder import decoded
from . import trial
from .commit import checked_out
from .compared import Comparison
from .deployment import Deployment
from .failure import DeployFailed
from .progress import Progress
from .terms import DEFINING, Terms, api_input_type

_EVERY = 0.25  # seconds between two looks at the replicas
_PATIENCE = 5.0  # seconds for which a version may look hopeless
_RESTARTS = 3  # of a replica, after which its failure is no accident
_ASKING = 10.0  # seconds until the app must have given a prediction
_SLO, _SLO_OF_CHATS = 0.1, 5.0  # seconds, where nothing is said; of chats until the first part
_LONGEST_EXAMPLE = 16 << 10  # bytes

# As the service has them, in serving/name.go.
_MODEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_APP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}")


def roll_out(
    model: str, bundle: Bundle, terms: Terms, comparison: Comparison | None = None, **members: Any
) -> Deployment:
    """Tries, uploads, registers, links, and waits; `members` are the version's, beside what the terms say. It raises
    DeployFailed."""
    return _Rollout(model, bundle, terms, comparison, members).run()


class _Rollout:
    def __init__(
        self, model: str, bundle: Bundle, terms: Terms, comparison: Comparison | None, members: dict[str, Any]
    ) -> None:
        self._model, self._bundle, self._terms, self._comparison = model, bundle, terms, comparison
        self._members = terms.of_version() | members
        self._client = terms.client or Client()
        self._deadline = Deadline(terms.timeout)
        self._progress = Progress(model, terms.progress)
        self._app = model if terms.app is True else terms.app or None
        self._seen: list[Version] = []  # versions of the model, when it was last looked
        self._asking: App | None = None  # the app, as it was before
        self._policies: tuple[Any, Any] | None = None  # of the app, before the canary and with it

    def run(self) -> Deployment:
        try:
            version = self._registered()
        except DeployFailed:
            raise
        except TopsailError as e:
            failed = DeployFailed(str(e), e.status)
            failed.problem = e.problem
            raise failed from e
        deployment = Deployment(self._client, self._model, version, self._app)
        try:
            self._link()
            self._try_out(version)
            if self._terms.keep_current and self._terms.canary is None:
                self._progress.done(f"version {version} gets replicas when it is current, or a policy names it")
            else:
                self._wait(version)
                self._ask(version)
        except TopsailError as e:
            failed = DeployFailed(f"{e}\n{self._take_back()}{self._left(version)}")
            failed.deployment = deployment
            raise failed from e
        return deployment

    def _registered(self) -> str:
        """The version, after all has been looked at that could keep it from being of use."""
        self._check_names()
        self._check_host()
        self._check_app()
        self._try()
        self._upload()
        return self._register()

    def _left(self, version: str) -> str:
        others = any(v.version != version for v in self._seen) and not self._terms.stays
        way = "e.deployment.rollback(); e.deployment.delete()" if others else "e.deployment.delete()"
        return f"{self._model}:{version} stays registered; to remove it: except topsail.DeployFailed as e: {way}"

    def _check_names(self) -> None:
        """Before anything is tried."""
        if not _MODEL.fullmatch(self._model):
            raise DeployFailed(
                f"{self._model!r} cannot be the name of a model: use 1 to 63 lower-case letters, digits or '-', "
                "beginning and ending with a letter or digit"
            )
        if self._app is not None and not _APP.fullmatch(self._app):
            raise DeployFailed(
                f"{self._app!r} cannot be the name of an app: use 1 to 63 letters, digits, '.', '_' or '-', "
                "beginning with a letter or digit"
            )
        if self._terms.version is not None and not _VERSION.fullmatch(str(self._terms.version)):
            raise DeployFailed(
                f"{str(self._terms.version)!r} cannot be a version: use 1 to 63 letters, digits, '.', '_', '+' or '-', "
                "beginning with a letter or digit"
            )

    def _check_length(self, app: App) -> None:
        """Of what the app's clients send, where it is refused only after the version is registered."""
        length = self._bundle.manifest.input_length
        for model in app.models or []:
            if not length or (model == self._model and not self._terms.canary):
                continue
            if not (current := self._client.models.get(model, timeout=self._deadline.left()).current):
                continue
            takes = self._client.versions.get(model, current, timeout=self._deadline.left()).input_length
            if takes and takes != length and (self._terms.canary or not self._terms.replace_contract):
                way = (
                    "without canary" if self._terms.canary else "with app= another name, or with replace_contract=True"
                )
                raise DeployFailed(
                    f"the app {self._app!r} takes inputs of length {takes}, as {model}:{current} does, and this model "
                    f"takes {length}: deploy it {way}"
                )

    def _try(self) -> None:
        if not trial.can_be_tried(self._bundle):
            return
        self._progress.now("trying the model here")
        sent = self._sent()
        result = trial.run(self._bundle, self._deadline.left(), bool(self._terms.hosted_by), self._comparison, sent)
        for x, said in zip(sent, result.get("also", ()), strict=False):
            if "error" in said:
                raise DeployFailed(
                    f"the model fails on {_short(x)}, the example of the app {self._app!r}, which its clients send: "
                    f"{said['error']}. Deploy it as another model, or with replace_contract=True"
                )
        answer = f", and its example gives {result['output']}" if "output" in result else ""
        where = "here, on the CPU for lack of a GPU" if result.get("on_cpu_instead") else "here"
        self._progress.done(f"tried {where}: it loads in {result['seconds']:.1f} s{answer}")

    def _sent(self) -> list[Any]:
        """What clients of the app send, as far as its example shows it; nothing where that is the bundle's own."""
        app, own = self._asking, self._bundle.manifest.example
        if app is None or not app.example or self._terms.replace_contract or own is None:
            return []
        if self._model not in (app.models or []) or (self._terms.keep_current and self._terms.canary is None):
            return []
        try:
            example = json.loads(app.example)
        except ValueError:
            return []
        return [example] if example != own and type(example) is type(own) else []

    def _check_host(self) -> None:
        """Before anything is tried."""
        host, runtime = self._terms.hosted_by, self._bundle.manifest.runtime
        if not host:
            return
        if runtime in ALONE:
            raise DeployFailed(f"the runtime {runtime!r} needs a process for each model: leave hosted_by out")
        try:
            self._client.models.get(host, timeout=self._deadline.left())
        except NotFound:
            raise DeployFailed(f"there is no model {host!r} to hold it: make one with topsail.deploy_host") from None

    def _check_app(self) -> None:
        """Before anything is changed."""
        if self._app is None:
            return
        try:
            app = self._client.apps.get(self._app, timeout=self._deadline.left())
        except NotFound:
            self._check_canary(None)
            self._create_app(self._app, dry_run=True)
            return
        self._asking = app
        self._check_canary(app)
        self._check_length(app)
        if not self._bundle.manifest.input_type:
            return
        takes, given = api_input_type(app.input_type), api_input_type(self._bundle.manifest.input_type)
        if takes != given:
            other = "" if "tensors" in (takes, given) else f", or with input_type={takes!r}"
            raise DeployFailed(
                f"the app {self._app!r} takes {takes}, and the model {given}: deploy it with app= another name{other}"
            )

    def _check_canary(self, app: App | None) -> None:
        if self._terms.canary is None:
            return
        kind = (app.policy or {}).get("kind", "single") if app else "single"
        if app is None:
            raise DeployFailed(
                f"there is no app {self._app!r} yet, which could try a version: deploy it without canary"
            )
        if app.models != [self._model]:
            raise DeployFailed(
                f"canary tries a version beside the current one of an app's only model, and {self._model!r} is not "
                f"that of the app {self._app!r}: deploy it without canary"
            )
        if kind not in ("single", "versions"):
            raise DeployFailed(
                f"the app {self._app!r} has the policy {kind!r}, which chooses by itself: canary is for apps that have "
                "single or versions"
            )

    def _upload(self) -> Artifact:
        size = len(self._bundle.data)
        try:
            found = self._client.artifacts.get(self._bundle, timeout=self._deadline.left())
            self._progress.done(f"bundle {found.digest[:19]}… is there already")
        except NotFound:
            self._progress.now(f"uploading {_amount(size)}")
            found = self._client.artifacts.upload(self._bundle, timeout=self._deadline.left())
            self._progress.done(f"bundle {found.digest[:19]}… uploaded, {_amount(size)}")
        if found.digest != self._bundle.digest:
            raise DeployFailed(f"the service stored {found.digest}, and the bundle is {self._bundle.digest}")
        return found

    def _register(self) -> str:
        """The version that has this bundle, made if there is none. Another client may take the next number first."""
        commit = checked_out() if self._terms.commit is None else self._terms.commit
        while True:
            versions = self._versions()
            if found := self._same(versions):
                return self._reuse(found)
            version = str(self._terms.version or _next(versions))
            try:
                self._client.versions.create(
                    self._model,
                    version,
                    bundle=self._bundle.digest,
                    replace=self._terms.replace,
                    replace_contract=self._terms.replace_contract,
                    keep_current=self._terms.stays,
                    commit=commit,
                    timeout=self._deadline.left(),
                    **self._members,
                )
            except Conflict:
                if self._terms.version is None and version in {v.version for v in self._versions()}:
                    continue
                raise
            self._progress.done(f"version {version} is registered")
            return version

    def _versions(self) -> list[Version]:
        try:
            self._seen = list(self._client.versions.list(self._model, timeout=self._deadline.left()))
        except NotFound:
            self._seen = []
        return self._seen

    def _same(self, versions: list[Version]) -> Version | None:
        wanted = self._bundle.digest, self._members.get("hosted_by"), self._members.get("host")
        same = [v for v in versions if (v.bundle, v.hosted_by, v.host) == wanted and self._is_as_said(v)]
        if self._terms.version is None:
            return max(same, key=lambda v: (bool(v.current), _number(v.version)), default=None)
        name = str(self._terms.version)
        if name in {v.version for v in versions} - {v.version for v in same} and not self._terms.replace:
            raise DeployFailed(
                f"{self._model}:{name} is there with other content, and versions do not change: leave version= out "
                "to get the next one, or give replace=True"
            )
        return next((v for v in same if v.version == name), None)

    def _is_as_said(self, version: Version) -> bool:
        has = version.to_dict()
        return all(_full(has.get(k)) == _full(self._members[k]) for k in (*DEFINING, "stages") if k in self._members)

    def _reuse(self, found: Version) -> str:
        version, left = found.version, self._deadline.left
        again = ""
        if not found.current and not self._terms.stays:
            before = next((v.version for v in self._seen if v.current), "")
            contract = self._terms.replace_contract
            self._client.models.set_current(self._model, version, replace_contract=contract, timeout=left())
            again = f", and is current again in place of {before}: rollback() takes that back" if before else ""
        replicas = self._terms.replicas
        fixed = self._terms.scale is None and found.scale is None
        if fixed and replicas is not None and found.replicas != replicas:
            self._client.versions.scale(self._model, version, replicas, timeout=left())
        self._progress.done(f"version {version} has this bundle already{again}")
        return version

    def _link(self) -> None:
        if self._app is None:
            return
        try:
            app = self._client.apps.get(self._app, timeout=self._deadline.left())
        except NotFound:
            try:
                self._create_app(self._app, models=[self._model])
                self._progress.done(f"app {self._app} is registered: it answers within {self._slo() * 1e3:g} ms")
                return
            except Conflict:  # another client was faster
                app = self._client.apps.get(self._app, timeout=self._deadline.left())
        if self._model not in (app.models or []):
            self._client.apps.link(self._app, self._model, timeout=self._deadline.left())
            self._progress.done(f"app {self._app} has it{self._asked_instead(app)}")
        if other := self._other_terms(app):
            self._progress.done(f"app {self._app} keeps {other}: to change it, use client.apps.update")
        if not app.example and (example := self._example()):
            self._client.apps.update(self._app, example=example, timeout=self._deadline.left())

    def _try_out(self, version: str) -> None:
        """As a canary, which a policy that has been there for that may say more of."""
        if self._app is None or self._terms.canary is None:
            return
        if self._client.models.get(self._model, timeout=self._deadline.left()).current == version:
            raise DeployFailed(f"{self._model}:{version} has this bundle and is current: nothing to try")
        before = self._client.apps.get(self._app, timeout=self._deadline.left()).policy or {}
        kept = {k: v for k, v in before.items() if k not in ("kind", "model", "weights", "canary", "share")}
        policy = kept | {"kind": "versions", "canary": version, "share": self._terms.canary}
        self._client.apps.set_policy(self._app, policy, timeout=self._deadline.left())
        self._policies = before, self._client.apps.get(self._app, timeout=self._deadline.left()).policy
        self._progress.done(f"app {self._app} gives {self._terms.canary:.4g} of its queries to version {version}")

    def _take_back(self) -> str:
        """The policy as it was before a canary that failed, unless another client has changed it since."""
        if self._policies is None or self._app is None:
            return ""
        before, tried = self._policies
        try:
            app = self._client.apps.get(self._app)
            if app.policy != tried:
                return ""
            self._client.apps.set_policy(app, before)
        except TopsailError as e:
            return f"the policy of app {self._app} still tries it: {e}\n"
        return f"the policy of app {self._app} is as it was before\n"

    def _asked_instead(self, app: App) -> str:
        """Of an app that has asked other models before: what it goes on to ask."""
        policy = app.policy or {}
        first = policy.get("model") or next(iter(app.models or []), "")
        if not first or policy.get("kind", "single") != "single":
            return ""
        return f", and goes on asking {first}, which is what its policy says: client.apps.set_policy changes that"

    def _other_terms(self, app: App) -> str:
        """What was said of an app that is there, and says otherwise."""
        terms = self._terms
        kept = []
        if terms.slo is not None and round(terms.slo * 1e6) != app.latency_slo_micros:
            kept.append(f"its slo of {app.latency_slo_micros / 1e6:g} s")
        if terms.default is not None and terms.default_output() != app.default_output:
            kept.append(f"its default {app.default_output}")
        return " and ".join(kept)

    def _example(self) -> str | None:
        """What an app without one is given, to show how to ask it: the bundle's example, unless that is long."""
        if self._bundle.manifest.example is None:
            return None
        text = json.dumps(self._bundle.manifest.example)
        return text if len(text) <= _LONGEST_EXAMPLE else None

    def _slo(self) -> float:
        usual = _SLO_OF_CHATS if self._bundle.manifest.input_type == "chat" else _SLO
        return usual if self._terms.slo is None else self._terms.slo

    def _create_app(self, name: str, **more: Any) -> None:
        manifest = self._bundle.manifest
        example = self._example()
        more |= {} if example is None else {"example": example}
        more |= {"signature": manifest.signature.document()} if manifest.signature else {}
        self._client.apps.create(
            name,
            input_type=api_input_type(manifest.input_type or "doubles"),
            slo=self._slo(),
            default_output=self._terms.default_output(),
            timeout=self._deadline.left(),
            **more,
        )

    def _wait(self, version: str) -> None:
        """Until as many replicas are ready as were asked for; when the time is up, one is enough."""
        wanted, hopeless, failed = self._terms.wanted, 0.0, ""
        while wanted:
            replicas = list(self._client.replicas.list(self._model, version, timeout=max(self._deadline.left(), 1.0)))
            ready = sum(r.state == "ready" for r in replicas)
            if ready >= wanted or (ready and not self._deadline.left()):
                break
            hopeless = hopeless + _EVERY if _hopeless(replicas) else 0.0
            failed = next((r.reason for r in replicas if r.state == "failed" and r.reason), failed)
            if hopeless >= _PATIENCE or not self._deadline.left():
                raise DeployFailed(self._why_not(version, replicas, failed))
            self._progress.now(_state(ready, wanted, replicas))
            time.sleep(_EVERY)
        if wanted:
            self._progress.done(f"version {version} is ready after {self._progress.seconds():.1f} s")

    def _why_not(self, version: str, replicas: list[Replica], failed: str) -> str:
        """What has `failed` last says more than what one does that is starting again."""
        reason = failed or next((r.reason for r in replicas if r.reason), "no replica has started")
        said = ""
        try:
            lines = [line for r in replicas[:1] for line in self._client.replicas.logs(r, lines=20)]
            said = "\n" + "\n".join(lines) if lines else ""
        except TopsailError:  # it may be gone; the reason is there all the same
            pass
        return f"{self._model}:{version} did not become ready: {reason}{said}"

    def _ask(self, version: str) -> None:
        """A gateway may hear of a replica a moment later than this program, and a host loads what it is asked for."""
        manifest = self._bundle.manifest
        if self._app is None or manifest.example is None or not (self._terms.wanted or self._terms.hosted_by):
            return
        own = version if self._terms.stays else None
        example, until = decoded(manifest.example, manifest.input_type), Deadline(min(_ASKING, self._deadline.left()))
        try:
            while True:
                answer = self._client.predict(self._app, example, timeout=max(until.left(), 1.0), version=own)
                if not answer.default or not until.left():
                    break
                time.sleep(_EVERY / 5)
        except (NotFound, Unavailable, Timeout) as e:
            self._progress.done(f"the gateway could not be asked: {e}")
            return
        if answer.default and self._terms.hosted_by:  # where it loads is nowhere else to be seen
            raise DeployFailed(f"{self._model}:{version} is registered, and answers with the default: {answer.cause}")
        url = f"{self._client.url}/{self._app}/predict"
        why = f", its default: {answer.cause}" if answer.default else ""
        self._progress.done(f"{url} answers {_short(answer.output)}{why}")


def _full(value: Any) -> Any:
    """Without the members that say nothing, which the service leaves out. Nothing at all is None."""
    if isinstance(value, dict):
        value = {k: full for k, v in value.items() if (full := _full(v)) is not None}
    elif isinstance(value, (list, tuple)):
        value = [_full(v) for v in value]
    return value or None


def _next(versions: list[Version]) -> int:
    return max((_number(v.version) for v in versions), default=0) + 1


def _number(version: str) -> int:
    return int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else 0


def _hopeless(replicas: list[Replica]) -> bool:
    """All have failed, or start again and again."""
    return bool(replicas) and all(
        r.state == "failed" or (r.state != "ready" and (r.restarts or 0) >= _RESTARTS) for r in replicas
    )


def _state(ready: int, wanted: int, replicas: list[Replica]) -> str:
    other = next((r for r in replicas if r.state != "ready"), None)
    doing = f": {other.state}{', ' + other.reason if other.reason else ''}" if other else ""
    return f"{ready} of {wanted} ready{doing}"


def _amount(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
