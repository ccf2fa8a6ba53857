"""A management service for tests, with a gateway and Clipper's requests beside: a real HTTP server, small and strict.

It holds every request to the document of the API, and remembers breaches. What it answers is what Topsail would, as far
as clients can tell; bundles are verified, and queries are answered by the bundle's own model.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import contract
from contract import Breach

from topsail import bundle, testing
from topsail.runtime import modules
from topsail.runtime.folder import Folder, decoded
from topsail.runtime.load import load

TIME = "2030-01-31T12:00:00Z"


class Refusal(Exception):
    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = {"type": "about:blank", "title": code, "status": status, "detail": detail, "code": code}


class Heard(NamedTuple):
    method: str
    path: str
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Management:
    def __init__(self, port: int = 0) -> None:
        self.apps: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, dict[str, dict[str, Any]]] = {}
        self.current: dict[str, str] = {}
        self.previous: dict[str, str] = {}
        self.artifacts: dict[str, bytes] = {}
        self.streams: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, dict[str, Any]] = {}
        self.audits = [_audit(i) for i in range(7)]
        self.reasons: deque[str] = deque()  # what replicas say, one for each look, before they are ready
        self.failing = ""  # why replicas fail
        self.unable = ""  # why the gateway answers with defaults
        self.faults: deque[Any] = deque()  # before a request is done: a status, or "cut" after it was done
        self.heard: list[Heard] = []
        self.breaches: list[str] = []
        self.ended = threading.Event()
        self._revision = 0
        self._lock = threading.RLock()
        self._models: dict[str, Any] = {}
        owner = self

        class Handler(_Handler):
            management = owner

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.addr = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.addr}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def did(self, *methods: str) -> list[str]:
        """The requests of these methods, changes without them, but for dry runs."""
        wanted = methods or ("POST", "PUT", "PATCH", "DELETE")
        return [f"{h.method} {unquote(h.path)}" for h in self.heard if h.method in wanted and "dry_run=" not in h.path]

    # The API, by the operations of its document.

    def listApps(self, **query):
        return 200, self._page(list(self.apps), query, self._app)

    def createApp(self, body=None, **query):
        if (there := self.apps.get(body["name"])) and there.items() >= body.items():
            return 200, there
        if there:
            raise Refusal(409, "exists", f"there is an app {body['name']!r} already")
        if body["name"] == "metrics":
            raise Refusal(400, "invalid", "the name 'metrics' is reserved")
        return self._change("app", body["name"], body, 201, query)

    def getApp(self, app):
        return 200, self._app(app)

    def putApp(self, app, body=None, if_match=None, **query):
        if app in self.apps and if_match is None:
            raise Refusal(428, "precondition", f"the app {app!r} is there: send If-Match")
        return self._change("app", app, body, 200 if app in self.apps else 201, query, if_match)

    def patchApp(self, app, body=None, if_match=None, **query):
        merged = {k: v for k, v in (self._app(app) | body).items() if v is not None}
        return self._change("app", app, merged, 200, query, if_match)

    def deleteApp(self, app, if_match=None, **query):
        self._app(app)
        self._match(self.apps[app], if_match)
        return self._gone("app", app, query, lambda: self.apps.pop(app))

    def linkModel(self, app, model, if_match=None, **query):
        if model not in self.versions:
            raise Refusal(404, "not_found", f"there is no model {model!r}")
        found = self._app(app)
        models = found.get("models", [])
        return self._change("app", app, found | {"models": [*models, *{model} - {*models}]}, 200, query, if_match)

    def unlinkModel(self, app, model, if_match=None, **query):
        found = self._app(app)
        if model not in found.get("models", []):
            raise Refusal(404, "not_found", f"{app!r} does not link {model!r}")
        models = [m for m in found["models"] if m != model]
        return self._change("app", app, found | {"models": models}, 200, query, if_match)

    def putPolicy(self, app, body=None, if_match=None, **query):
        return self._change("app", app, self._app(app) | {"policy": body}, 200, query, if_match)

    def setCount(self, role, body=None):
        if role != "gateway":
            raise Refusal(409, "refused", "in local mode one process has every role")
        assert body == {"count": 3, "reason": "night"}
        return 202, None

    def getInsight(self, app, uid="", context=""):
        self._app(app)
        learned = {"uid": uid, "context": context, "steps": 3, "loss": 0.5, "regret": 0.1}
        said = {"app": app, "policy": "exp4", "at": "2026-01-01T00:00:00Z", "learned": learned}
        return 200, said | {"models": [], "decisions": []}

    def forgetLearned(self, app, uid="", context=""):
        self._app(app)
        return 204, None

    def listHistory(self, model, **query):
        who = {"who": "ann", "from": "10.0.0.7", "client": "curl/8"}
        change = {"id": "2", "at": "2026-01-01T00:00:00Z", "action": "promoted", "version": "2", "before": "1"}
        return 200, {"items": [change | who]}

    def listModels(self, **query):
        return 200, self._page(sorted(self.versions), query, self._model)

    def getModel(self, model):
        return 200, self._model(model)

    def deleteModel(self, model, if_match=None, **query):
        if apps := self._model(model)["apps"]:
            raise Refusal(409, "in_use", f"{model!r} is linked by {apps}")
        return self._gone("model", model, query, lambda: self.versions.pop(model))

    def setCurrent(self, model, body=None, if_match=None, **query):
        self._version(model, body["version"])
        self._make_current(model, body["version"])
        return 200, self._model(model)

    def rollBack(self, model, body=None, if_match=None, **query):
        self._model(model)
        version = (body or {}).get("version") or self.previous.get(model)
        if not version:
            raise Refusal(409, "conflict", f"{model!r} had no other version")
        self._make_current(model, version)
        return 200, self._model(model)

    def listVersions(self, model, **query):
        self._model(model)
        return 200, self._page(sorted(self.versions[model]), query, lambda v: self._version(model, v))

    def createVersion(self, model, body=None, keep_current=False, replace=False, commit=None, **query):
        name = body["version"]
        if name in self.versions.get(model, {}) and not replace:
            raise Refusal(409, "exists", f"{model}:{name} exists")
        if body.get("image"):
            raise Refusal(400, "invalid", "local mode runs no Docker images: deploy a bundle, or use a cluster")
        if body.get("bundle"):
            body = self._manifest(body["bundle"]) | body
        if query.get("dry_run"):
            return 200, _dry_run("create", "version", f"{model}:{name}")
        deployed = {"by": "local", "at": TIME, "client": self.heard[-1].headers["User-Agent"]}
        if commit:
            deployed["commit"] = commit
        said = {"model": model, "origin": "api", "deployed": deployed}
        self.versions.setdefault(model, {})[name] = {"replicas": 1} | body | said
        if not keep_current:
            self._make_current(model, name)
        return 201, self._version(model, name)

    def getVersion(self, model, version):
        return 200, self._version(model, version)

    def deleteVersion(self, model, version, if_match=None, **query):
        self._version(model, version)
        if self.current.get(model) == version:
            raise Refusal(409, "in_use", f"{model}:{version} is the current version")
        return self._gone("version", f"{model}:{version}", query, lambda: self.versions[model].pop(version))

    def setScale(self, model, version, body=None, if_match=None, **query):
        self._version(model, version)
        self.versions[model][version].update(body)
        return 200, self._version(model, version)

    def setPin(self, model, version, body=None, if_match=None, **query):
        self._version(model, version)
        self.versions[model][version]["pin"] = body
        return 200, self._version(model, version)

    def releasePin(self, model, version, if_match=None, **query):
        self.versions[model][version].pop("pin")
        return 200, self._version(model, version)

    def getJob(self, model, version):
        return 200, {"kind": "process", "text": f"run {model}:{version}"}

    def listReplicas(self, model="", version="", **query):
        found = [r for r in self._replicas() if model in ("", r["model"]) and version in ("", r["version"])]
        return 200, self._page([r["id"] for r in found], query, lambda i: next(r for r in found if r["id"] == i))

    def getReplica(self, replica):
        return 200, self._replica(replica)

    def restartReplica(self, replica, **_):
        self._replica(replica)
        return 202, None

    def drainReplica(self, replica, **_):
        self._replica(replica)
        return 202, None

    def listArtifacts(self, **query):
        return 200, self._page(sorted(self.artifacts), query, self._artifact)

    def uploadArtifact(self, body=None):
        try:
            digest = bundle.read(body).digest
        except bundle.BundleError as e:
            raise Refusal(400, "invalid", str(e)) from None
        known = digest in self.artifacts
        self.artifacts[digest] = body
        return 200 if known else 201, self._artifact(digest)

    def getArtifact(self, digest):
        return 200, self._artifact(digest)

    def deleteArtifact(self, digest):
        if self._artifact(digest)["used_by"]:
            raise Refusal(409, "in_use", "a version uses it")
        del self.artifacts[digest]
        return 204, None

    def downloadArtifact(self, digest):
        self._artifact(digest)
        return 200, self.artifacts[digest]

    def listDecisions(self, model="", version="", limit="100"):
        said = {"model": model or "m", "version": version or "1", "at": TIME, "from": 1, "to": 2, "rule": "demand"}
        return 200, {"items": [said | {"reason": "more is asked", "outcome": "done"}][: int(limit)]}

    def getAppUsage(self, app):
        found = self._app(app)
        said = {"kind": "app", "app": app, "policy": "single", "latency_slo_micros": found["latency_slo_micros"]}
        return 200, said | {"candidates": found.get("models", []), "since": TIME} | _figures()

    def getVersionUsage(self, model, version):
        self._version(model, version)
        return 200, {"kind": "version", "model": model, "version": version, "since": TIME} | _figures()

    def listUsage(self, model="", **query):
        apps = {} if model else {app: self.getAppUsage(app)[1] for app in sorted(self.apps)}
        asked = [(m, v) for m in sorted(self.versions) for v in sorted(self.versions[m]) if model in ("", m)]
        all_ = apps | {f"{m}:{v}": self.getVersionUsage(m, v)[1] for m, v in asked}
        return 200, self._page(list(all_), query, all_.__getitem__)

    def getVersionStages(self, model, version, window="60"):
        stage = {"stage": "scale", "after": ["input"], "workers": 1, "ready": 1, "waiting": 0, "busy": 0.5}
        said = {"model": model, "version": version, "at": TIME, "window_seconds": int(window), "bottleneck": "scale"}
        return 200, said | {"stages": [stage] if self._version(model, version).get("stages") else []}

    def listAudit(self, kind="", name="", who="", **query):
        entries = {e["id"]: e for e in self.audits if name in ("", e["name"]) and who in ("", e["who"])}
        return 200, self._page(list(entries), query, entries.__getitem__)

    def listStreams(self, **query):
        return 200, self._page(sorted(self.streams), query, self.streams.__getitem__)

    def getStream(self, stream):
        return 200, self._stream(stream)

    def suspendStream(self, stream, body=None, **query):
        suspension = {"since": TIME, "by": "ann"} | (body or {})
        return self._change_stream(self._stream(stream) | {"suspension": suspension}, query)

    def resumeStream(self, stream, **query):
        open_ = {k: v for k, v in self._stream(stream).items() if k != "suspension"}
        return self._change_stream(open_, query)

    def patchStream(self, stream, body=None, **query):
        apps = self._stream(stream).get("apps", {}) | body["apps"]
        return self._change_stream(self._stream(stream) | {"apps": {k: v for k, v in apps.items() if v}}, query)

    def deleteStream(self, stream, **query):
        if "suspension" in self._stream(stream):
            raise Refusal(409, "in_use", f"stream {stream!r} is suspended; resume it first")
        return self._gone("stream", stream, query, lambda: self.streams.pop(stream))

    def listKeys(self, **query):
        return 200, self._page(sorted(self.keys), query, self.keys.__getitem__)

    def createKey(self, body=None, **query):
        if query.get("dry_run"):
            return 200, _dry_run("create", "key", body["name"])
        key = {"id": f"k{len(self.keys)}", "created": TIME} | body
        self.keys[key["id"]] = key
        return 201, key | {"secret": "shown-once"}

    def getKey(self, key):
        return 200, self._key(key)

    def revokeKey(self, key, **query):
        self._key(key)
        return self._gone("key", key, query, lambda: self.keys.pop(key))

    def getMe(self):
        said = {"name": "local", "role": "admin", "keys": False, "mode": "local", "version": "1"}
        return 200, said | {"gateway": self.url}

    def getScheduler(self):
        return 200, {"leader": "me", "dry_run": False, "pools": []}

    def getCluster(self):
        return 200, {"mode": "local", "processes": [], "servers": [], "alarms": []}

    def getTraffic(self):
        return 200, {"at": TIME, "window_seconds": 60, "apps": []}

    def exportCatalog(self):
        return 200, {"revision": self._revision, "apps": list(map(_plain, self.apps.values()))}

    def applyCatalog(self, body=None, **query):
        return 200, {"applied": not query.get("dry_run"), "changes": [], "notes": [], "revision": self._revision}

    # What it is made of.

    def answer(self, heard: Heard) -> tuple[int, Any]:
        """Does what a request asks."""
        with self._lock:
            wanted = contract.operation(heard.method, heard.path, heard.headers)
            arguments = wanted.query | _of_headers(heard)
            if wanted.body is not None:
                arguments["body"] = _read(heard.body, wanted.body)
            try:
                return getattr(self, wanted.name)(*wanted.names, **arguments)
            except Refusal as e:
                return e.problem["status"], e.problem

    def predict(self, app: str, inputs: list[Any], version: str | None) -> list[Any]:
        """What a version of the app's model says, or the current one, loaded from its bundle as a container does."""
        [model] = self.apps[app]["models"]
        asked = self.versions[model][version or self.current[model]]
        if asked["bundle"] not in self._models:
            with tempfile.TemporaryDirectory() as name:
                bundle.read(self.artifacts[asked["bundle"]]).unpack(Path(name))
                with modules.entered(Path(name), frozenset(sys.modules)):
                    self._models[asked["bundle"]] = load(Folder(Path(name)))
        served, kind = self._models[asked["bundle"]], asked["input_type"]
        answers = testing.run(served, [decoded(x, kind, served.signature) for x in inputs], kind)
        assert not [a.error for a in answers if a.error]
        beside = ("outputs", "confidence", "qualifiers")
        return [
            {"output": a.output} | {k: v for k in beside if (v := getattr(a, k)) not in (None, {})} for a in answers
        ]

    def clipper(self, request: str, body: dict[str, Any]) -> Any:
        """Clipper's requests, as far as its client makes them when all is well."""
        if request == "add_app":
            app = {"name": body["name"], "input_type": body["input_type"], "default_output": body["default_output"]}
            self._change("app", body["name"], app | {"latency_slo_micros": body["latency_slo_micros"]}, 201, {})
        elif request == "delete_app":
            self.apps.pop(body["name"])
        elif request == "add_model":
            self._complete(body)
        elif request in ("add_model_links", "delete_model_links"):
            change = self.linkModel if request.startswith("add") else self.unlinkModel
            change(body["app_name"], *body["model_names"])
        elif request == "set_model_version":
            self.setCurrent(body["model_name"], body={"version": body["model_version"]})
        elif request == "delete_versioned_model":
            self._forget(body["model_name"], body["model_version"])
        else:
            return self._clipper_reads(request, body)
        return "Success!"

    def _clipper_reads(self, request: str, body: dict[str, Any]) -> Any:
        models = [self._clipper_model(m, v) for m in self.versions for v in self.versions[m]]
        if request == "get_all_applications":
            return list(self.apps.values()) if body["verbose"] else list(self.apps)
        if request == "get_application":
            return self.apps.get(body["name"], {})
        if request == "get_linked_models":
            return self.apps[body["app_name"]].get("models", [])
        if request == "get_all_models":
            return models if body["verbose"] else [f"{m['model_name']}:{m['model_version']}" for m in models]
        if request == "get_model":
            wanted = body["model_name"], body["model_version"]
            return next((m for m in models if (m["model_name"], m["model_version"]) == wanted), {})
        assert request == "get_all_containers", request
        return [f"{r['model']}:{r['version']}:0" for r in self._replicas()]

    def _clipper_model(self, model: str, version: str) -> dict[str, Any]:
        said = self.versions[model][version]
        found = {"model_name": model, "model_version": version, "input_type": said.get("input_type")}
        return found | {
            "labels": said.get("labels", []),
            "container_name": said.get("bundle", "NO_CONTAINER"),
            "model_data_path": "DEPRECATED",
            "is_current_version": self.current.get(model) == version,
        }

    def _complete(self, body: dict[str, Any]) -> None:
        versions = self.versions.setdefault(body["model_name"], {})
        known = versions.get(body["model_version"])
        if known is not None and not known.pop("prepared", False):
            raise Refusal(400, "exists", "the version exists")
        said = {"model": body["model_name"], "version": body["model_version"], "input_type": body["input_type"]}
        versions[body["model_version"]] = said | {"replicas": 0} | (known or {}) | {"labels": body["labels"]}
        self._make_current(body["model_name"], body["model_version"])

    def _forget(self, model: str, version: str) -> None:
        self.versions[model].pop(version)
        if self.current.get(model) == version:
            self.current.pop(model)
        if not self.versions[model]:
            self.versions.pop(model)
            for app in self.apps.values():
                app["models"] = [m for m in app.get("models", []) if m != model]

    def _page(self, names: list[str], query: dict[str, str], find: Callable[[str], Any]) -> dict[str, Any]:
        begin, size = int(query.get("cursor", 0)), int(query.get("limit", 3))
        page = {"items": [_plain(find(n)) for n in names[begin : begin + size]]}
        return page | ({"next": str(begin + size)} if begin + size < len(names) else {})

    def _app(self, app: str) -> dict[str, Any]:
        if app not in self.apps:
            raise Refusal(404, "not_found", f"there is no app {app!r}")
        return self.apps[app]

    def _model(self, model: str) -> dict[str, Any]:
        if model not in self.versions:
            raise Refusal(404, "not_found", f"there is no model {model!r}")
        current = self.current.get(model, "")
        found = {"name": model, "current": current, "serving": current, "previous": self.previous.get(model, "")}
        apps = [name for name, app in self.apps.items() if model in app.get("models", [])]
        return found | {"versions": sorted(self.versions[model]), "apps": apps}

    def _version(self, model: str, version: str) -> dict[str, Any]:
        if version not in self.versions.get(model, {}):
            raise Refusal(404, "not_found", f"there is no version {model}:{version}")
        return self.versions[model][version] | {"current": self.current.get(model) == version}

    def _make_current(self, model: str, version: str) -> None:
        if self.current.get(model) not in (None, version):
            self.previous[model] = self.current[model]
        self.current[model] = version

    def _manifest(self, digest: str) -> dict[str, Any]:
        if digest not in self.artifacts:
            raise Refusal(400, "invalid", f"there is no bundle {digest}: upload it first")
        manifest = bundle.read(self.artifacts[digest]).manifest
        said: dict[str, Any] = {"input_type": manifest.input_type, "input_length": manifest.input_length}
        if manifest.signature:
            said["signature"] = manifest.signature.document()
        return {k: v for k, v in said.items() if v}

    def _replicas(self) -> list[dict[str, Any]]:
        reason = self.reasons.popleft() if self.reasons else ""
        state = "failed" if self.failing else "starting" if reason else "ready"
        found = []
        for model, versions in self.versions.items():
            for version, said in versions.items():
                for i in range(said.get("replicas", 1)):
                    one = {"id": f"{model}-{version}-{i}", "model": model, "version": version, "state": state}
                    found.append(one | ({"reason": self.failing or reason} if reason or self.failing else {}))
        return found

    def _replica(self, replica: str) -> dict[str, Any]:
        for found in self._replicas():
            if found["id"] == replica:
                return found
        raise Refusal(404, "not_found", f"there is no replica {replica!r}")

    def _artifact(self, digest: str) -> dict[str, Any]:
        if digest not in self.artifacts:
            raise Refusal(404, "not_found", f"there is no bundle {digest}")
        manifest = json.loads(
            json.dumps({"format": 1, "files": {}} | bundle.read(self.artifacts[digest]).manifest.members())
        )
        used = [f"{m}:{v}" for m, vs in self.versions.items() for v, said in vs.items() if said.get("bundle") == digest]
        return {
            "digest": digest,
            "size": len(self.artifacts[digest]),
            "created": TIME,
            "manifest": manifest,
            "used_by": used,
        }

    def _stream(self, stream: str) -> dict[str, Any]:
        if stream not in self.streams:
            raise Refusal(404, "not_found", f"there is no stream {stream!r}")
        return self.streams[stream]

    def _change_stream(self, stream: dict[str, Any], query: dict[str, Any]) -> tuple[int, Any]:
        if query.get("dry_run"):
            return 200, _dry_run("update", "stream", stream["name"])
        self.streams[stream["name"]] = stream
        return 200, stream

    def _key(self, key: str) -> dict[str, Any]:
        if key not in self.keys:
            raise Refusal(404, "not_found", f"there is no key {key!r}")
        return self.keys[key]

    def _change(self, kind, name, members, status, query, if_match=None) -> tuple[int, Any]:
        if name in self.apps:
            self._match(self.apps[name], if_match)
        if query.get("dry_run"):
            return 200, _dry_run("create" if status == 201 else "update", kind, name)
        self._revision += 1
        self.apps[name] = members | {"etag": f'"{self._revision}"', "origin": "api"}
        return status, self.apps[name]

    def _match(self, found: dict[str, Any], if_match: str | None) -> None:
        if if_match not in (None, "*", found.get("etag")):
            raise Refusal(412, "conflict", "somebody has changed it meanwhile: read it again")

    def _gone(self, kind: str, name: str, query: dict[str, Any], do: Callable[[], Any]) -> tuple[int, Any]:
        if query.get("dry_run"):
            return 200, _dry_run("delete", kind, name)
        do()
        return 204, None


class _Handler(BaseHTTPRequestHandler):
    management: Management
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def do_POST(self) -> None:
        m = self.management
        heard = Heard(
            self.command, self.path, self.headers, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        )
        m.heard.append(heard)
        fault = m.faults.popleft() if m.faults else None
        if isinstance(fault, int):
            self._send(fault, {"title": "Unavailable", "detail": "not now", "status": fault})
            return
        try:
            self._route(heard, fault == "cut")
        except Breach as e:
            m.breaches.append(f"{heard.method} {heard.path}: {e}")
            self._send(400, {"title": "Breach", "detail": str(e), "status": 400})

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def _route(self, heard: Heard, cut: bool) -> None:
        m, path = self.management, urlsplit(heard.path).path
        if path.startswith("/admin/"):
            self._clipper(path.removeprefix("/admin/"), heard)
        elif path in ("/health", "/metrics"):
            self._send(200, {"status": "ok"})
        elif path.endswith("/predict") and not path.startswith("/api/"):
            self._predict(unquote(path.split("/")[1]), heard.json)
        elif path.endswith(("/logs", "/events")):
            contract.operation(heard.method, heard.path, heard.headers)
            self._stream(path)
        else:
            status, body = m.answer(heard)
            if cut:
                self.close_connection = True
            else:
                self._send(status, body)

    def _clipper(self, request: str, heard: Heard) -> None:
        if request == "ping":
            self._send(200, b"PONG")
            return
        try:
            said = self.management.clipper(request, heard.json)
        except Refusal as e:
            self._send(400, str(e).encode())
            return
        self._send(200, said.encode() if isinstance(said, str) else said)

    def _predict(self, app: str, body: Any) -> None:
        outputs = self.management.predict(app, body.get("input_batch") or [body["input"]], body.get("version"))
        answers = [{"query_id": 7, "default": False} | output for output in outputs]
        if why := self.management.unable:
            answers = [a | {"output": None, "default": True, "default_explanation": why} for a in answers]
        self._send(200, {"batch_predictions": answers} if len(answers) != 1 else answers[0])

    def _stream(self, path: str) -> None:
        """Log lines, or events; it goes on until the client leaves or the test ends."""
        self.close_connection = True
        self.send_response(200)
        self.end_headers()
        if path.endswith("/logs"):
            stage = parse_qs(urlsplit(self.path).query).get("stage", [""])[0]
            self.wfile.write(f"[{stage}/0] loading\n".encode() if stage else b"loading\nr\xc3\xa9ady\n")
            if "follow=true" not in self.path:
                return
        else:
            self.wfile.write(
                b': hello\n\nevent: hello\ndata: {"revision": 1,\ndata: "me": {}}\n\nevent: audit\ndata: {}\n\n'
            )
        while not self.management.ended.wait(0.005):
            try:
                self.wfile.write(b"more\n" if path.endswith("/logs") else b": still here\n\n")
            except OSError:
                return

    def _send(self, status: int, body: Any) -> None:
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(_plain(body)).encode()
        self.send_response(status)
        if isinstance(body, dict) and "etag" in body:
            self.send_header("ETag", body["etag"])
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def _plain(body: Any) -> Any:
    return {k: v for k, v in body.items() if k != "etag"} if isinstance(body, dict) else body


def _of_headers(heard: Heard) -> dict[str, Any]:
    found = heard.headers.get("If-Match")
    return {} if found is None else {"if_match": found}


def _read(body: bytes, schema: Any) -> Any:
    if schema.get("format") == "binary":
        return body
    value = json.loads(body)
    contract.check(value, schema)
    return value


def _dry_run(action: str, kind: str, name: str) -> dict[str, Any]:
    change = {"action": action, "kind": kind, "name": name}
    return {"dry_run": True, "changes": [change], "effects": [f"{name} would be {action}d"]}


def _figures() -> dict[str, Any]:
    failure = {"at": TIME, "cause": "model_error", "message": "too dark"}
    times = {"total_micros": 900, "mean_micros": 300.0, "min_micros": 100, "max_micros": 600}
    return {"usage": 3, "cached": 1, "failed": 1, "missed": 0, "last_failure": failure} | times


def _audit(i: int) -> dict[str, Any]:
    return {"id": f"a{i}", "at": TIME, "who": "ann", "action": "update", "kind": "app", "name": "wine"}
