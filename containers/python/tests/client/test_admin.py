"""What a client manages, against a service that holds each request to the document of the API."""

import asyncio
import pickle
import threading

import pytest
from awaiting import grow_impatient
from gateway import CUT, HANG, Gateway
from management import TIME
from sidecar import PATIENCE

import topsail
from topsail import bundle
from topsail.bundle import PYTHON, Manifest
from topsail.client.admin import record

BUNDLE = bundle.build(Manifest("python", "m.py", PYTHON, input_type="doubles", input_length=2), {"m.py": b"x = 1"})


@pytest.fixture
def client(management, connect):
    """Either of the clients."""
    return connect(management.url, admin_url=management.url, timeout=PATIENCE)


@pytest.fixture
def wine(client):
    """An app with a model of two versions."""
    client.artifacts.upload(BUNDLE)
    client.versions.create("forest", "1", bundle=BUNDLE.digest)
    client.versions.create("forest", "2", bundle=BUNDLE.digest, replicas=2)
    return client.apps.create("wine", slo=0.02, default_output="-1", models=["forest"])


def test_apps(client, wine):
    assert (wine.name, wine.latency_slo_micros, wine.models, wine.origin) == ("wine", 20_000, ["forest"], "api")
    assert client.apps.get("wine") == client.apps.get(wine) == wine
    assert client.apps.update(wine, default_output=None, weight=2).weight == 2
    assert client.apps.get("wine").default_output is None
    assert client.apps.unlink("wine", "forest").models == []
    assert client.apps.link("wine", client.models.get("forest")).models == ["forest"]
    assert client.apps.set_policy("wine", {"kind": "exp4"}).policy == {"kind": "exp4"}
    assert client.apps.insight("wine", user="ann").learned["uid"] == "ann"
    client.apps.forget("wine", user="ann", context="home")
    assert client.apps.delete("wine") is None
    with pytest.raises(topsail.NotFound, match="there is no app 'wine'") as e:
        client.apps.get("wine")
    assert (e.value.status, e.value.code, e.value.problem["title"]) == (404, "not_found", "not_found")


def test_models(client, wine):
    model = client.models.get("forest")
    assert (model.current, model.previous, model.versions, model.apps) == ("2", "1", ["1", "2"], ["wine"])
    assert client.models.rollback("forest").current == "1"
    assert client.models.rollback(model, "2").current == "2"
    assert client.models.set_current("forest", client.versions.get("forest", "1")).current == "1"
    with pytest.raises(topsail.Conflict, match="is linked by") as e:
        client.models.delete("forest")
    assert e.value.code == "in_use"
    client.apps.delete("wine")
    client.models.delete("forest")
    assert list(client.models.list()) == []


def test_versions(client, wine):
    made = client.versions.get("forest", "2")
    assert (made.bundle, made.input_type, made.input_length, made.replicas, made.current) == (
        BUNDLE.digest,
        "doubles",
        2,
        2,
        True,
    )
    assert client.versions.create("forest", "3", bundle=BUNDLE.digest, keep_current=True).current is False
    assert client.versions.scale("forest", "3", 4).replicas == 4
    assert client.versions.scale("forest", made, scale={"min": 1, "max": 8}).scale == {"min": 1, "max": 8}
    assert client.versions.pin("forest", "3", 5, reason="the sale").pin == {"count": 5, "reason": "the sale"}
    assert client.versions.release("forest", "3").pin is None
    assert client.versions.job("forest", "3").text == "run forest:3"
    client.versions.delete("forest", "3")
    assert [v.version for v in client.versions.list("forest")] == ["1", "2"]
    with pytest.raises(topsail.Conflict, match="is the current version"):
        client.versions.delete("forest", "2")
    with pytest.raises(topsail.BadRequest, match="local mode runs no Docker images"):
        client.versions.create("forest", "4", image="forest:4")


def test_what_a_version_did(client, wine, management):
    measured = {"since": "2030-01-31T12:00:00Z", "answers": 4, "errors": 0.25, "batches": 2, "p50_micros": 10250.0}
    assert client.versions.get("forest", "1").performance is None
    management.versions["forest"]["1"]["performance"] = measured
    seen = client.versions.get("forest", "1")
    assert seen.performance == measured
    assert "performance" not in seen.to_send()


def test_where_a_version_comes_from(client, wine):
    made = client.versions.create("forest", "3", bundle=BUNDLE.digest, commit="c1")
    own = {"client": f"topsail-python/{topsail.__version__}", "commit": "c1"}
    assert made.deployed == {"by": "local", "at": "2030-01-31T12:00:00Z"} | own
    assert "deployed" not in made.to_send()
    assert "commit" not in client.versions.create("forest", "4", bundle=BUNDLE.digest).deployed


def test_usage(client, wine, management):
    of_app = client.apps.usage(wine)
    assert (of_app.kind, of_app.app, of_app.candidates, of_app.usage) == ("app", "wine", ["forest"], 3)
    of_version = client.versions.usage("forest", client.versions.get("forest", "2"))
    assert (of_version.model, of_version.version, of_version.mean_micros) == ("forest", "2", 300.0)
    assert of_version.last_failure["message"] == "too dark"
    assert (of_version.app, of_version.stages) == (None, None)
    management.heard.clear()
    assert [u.app or f"{u.model}:{u.version}" for u in client.usage(limit=2)] == ["wine", "forest:1", "forest:2"]
    assert len(management.heard) == 2
    assert [u.version for u in client.usage("forest")] == ["1", "2"]
    with pytest.raises(topsail.NotFound):
        client.apps.usage("beer")
    with pytest.raises(topsail.NotFound):
        client.versions.usage("forest", "9")


def test_stages(client, wine, management):
    client.versions.create("forest", "staged", command=["serve"], stages=[{"name": "scale"}], keep_current=True)
    stages = client.versions.stages("forest", "staged", window=300)
    assert management.heard[-1].path == "/api/v1/models/forest/versions/staged/stages?window=300"
    assert (stages.bottleneck, stages.window_seconds, stages.stages[0]["busy"]) == ("scale", 300, 0.5)
    assert client.versions.stages("forest", "1").stages == []
    with pytest.raises(topsail.NotFound):
        client.versions.stages("forest", "9")


def test_a_version_made_of_another(client, wine):
    """Only what one may say is said again."""
    again = client.versions.get("forest", "2")
    client.versions.create("copse", again)
    assert client.versions.get("copse", "2").bundle == BUNDLE.digest


def test_replicas(client, wine):
    assert [r.id for r in client.replicas.list("forest", "2")] == ["forest-2-0", "forest-2-1"]
    assert {r.state for r in client.replicas.list()} == {"ready"}
    replica = client.replicas.get("forest-1-0")
    client.replicas.restart(replica)
    client.replicas.drain("forest-1-0")
    assert list(client.replicas.logs(replica, lines=0)) == ["loading", "réady"]
    assert list(client.replicas.logs("forest-1-9", stage="rank")) == ["[rank/0] loading"]


def test_artifacts(client, management):
    uploaded = client.artifacts.upload(BUNDLE)
    assert (uploaded.digest, uploaded.size) == (BUNDLE.digest, len(BUNDLE.data))
    assert client.artifacts.upload(BUNDLE.data) == client.artifacts.get(BUNDLE) == uploaded
    assert bundle.read(client.artifacts.download(uploaded)).files == BUNDLE.files
    client.artifacts.delete(uploaded)
    assert list(client.artifacts.list()) == []
    with pytest.raises(topsail.BadRequest, match="no zip archive"):
        client.artifacts.upload(b"junk")


@pytest.fixture
def streams(management):
    """A stream of records and one of models, as processes announce them."""
    ends = {"output": "done", "dead_letter": "dead"}
    records = {"name": "wine", "kind": "data", "app": "wine", "input": ["records"]} | ends
    models = {"name": "wine.models", "kind": "model", "input": ["models"]} | ends
    management.streams = {stream["name"]: stream for stream in (records, models)}


def test_streams(client, streams, management):
    assert [(s.name, s.kind, s.app) for s in client.streams.list()] == [
        ("wine", "data", "wine"),
        ("wine.models", "model", None),
    ]
    models = client.streams.get("wine.models")
    assert (models.input, models.output, models.dead_letter, models.suspension) == (["models"], "done", "dead", None)
    suspended = client.streams.suspend(models, reason="version 7 is bad")
    assert suspended.suspension == {"since": TIME, "by": "ann", "reason": "version 7 is bad"}
    assert client.streams.get("wine.models") == suspended
    with pytest.raises(topsail.Conflict, match="is suspended; resume it first") as e:
        client.streams.delete(models)
    assert e.value.code == "in_use"
    assert client.streams.resume("wine.models") == models
    assert client.streams.delete("wine.models") is None
    with pytest.raises(topsail.NotFound):
        client.streams.get("wine.models")
    assert "reason" not in client.streams.suspend("wine").suspension
    assert management.did("PUT")[-1] == "PUT /api/v1/streams/wine/suspension"
    client.streams.map("wine", {"red": "red-wine", "white": "white-wine"})
    assert client.streams.map("wine", {"red": None}).apps == {"white": "white-wine"}


def test_what_was_said_of_a_stream_may_be_said_again(client, streams, management):
    management.faults.extend(["cut", 503])
    assert client.streams.suspend("wine").suspension
    management.faults.append("cut")
    assert client.streams.resume("wine").suspension is None
    management.faults.append("cut")
    assert client.streams.delete("wine") is None
    assert len(management.did()) == 3 + 2 + 2


def test_keys(client):
    made = client.keys.create("ann", "deployer", apps=["wine"], limit={"per_second": 5})
    assert (made.secret, made.apps, made.role) == ("shown-once", ["wine"], "deployer")
    assert "shown-once" not in repr(made)
    assert client.keys.get(made.id).secret is None
    assert [k.name for k in client.keys.list()] == ["ann"]
    assert client.keys.revoke(made) is None
    with pytest.raises(topsail.NotFound):
        client.keys.get(made.id)


def test_the_history_of_a_model(client, wine):
    [change] = client.models.history("forest")
    assert (change.action, change.version, change.before, change.who) == ("promoted", "2", "1", "ann")
    assert (change.address, change.client) == ("10.0.0.7", "curl/8")


def test_the_rest(client, wine):
    assert client.system.me().mode == "local"
    assert client.system.scheduler().leader == "me"
    assert client.system.cluster().alarms == []
    assert client.system.traffic().apps == []
    assert client.system.set_count("gateway", 3, reason="night") is None
    with pytest.raises(topsail.Conflict, match="one process has every role"):
        client.system.set_count("web", 2)
    assert client.system.apply(client.system.export(), dry_run=True).applied is False
    [decision] = client.decisions("wine", limit=1)
    assert (decision.model, decision.before, decision.after, decision.reason) == ("wine", 1, 2, "more is asked")
    with pytest.raises(AttributeError, match="there is no 'moood'; there is name"):
        _ = client.system.me().moood


def test_lists_come_in_pages(client, management):
    assert [e.id for e in client.audit()] == [f"a{i}" for i in range(7)]
    assert [h.path for h in management.heard] == ["/api/v1/audit", "/api/v1/audit?cursor=3", "/api/v1/audit?cursor=6"]
    management.heard.clear()
    assert next(client.audit(who="ann", limit=5)).who == "ann"
    assert [h.path for h in management.heard] == ["/api/v1/audit?who=ann&limit=5"]


def test_a_page_that_leads_to_itself(connect):
    gateway = Gateway()
    gateway.always = 200, {"items": [], "next": "x"}
    try:
        with pytest.raises(topsail.ServerError, match="the same page of /apps again and again"):
            list(connect(admin_url=gateway.url).apps.list())
    finally:
        gateway.stop()


def test_dry_runs_change_nothing(client, wine, streams, management):
    before = client.system.export(), list(client.streams.list())
    asked = [
        client.apps.create("beer", dry_run=True),
        client.apps.put(wine, dry_run=True),
        client.apps.update("wine", weight=3, dry_run=True),
        client.apps.delete("wine", dry_run=True),
        client.versions.create("forest", "9", bundle=BUNDLE.digest, dry_run=True),
        client.versions.delete("forest", "1", dry_run=True),
        client.streams.suspend("wine", reason="a dry run", dry_run=True),
        client.streams.resume("wine", dry_run=True),
        client.streams.map("wine", {"red": "wine"}, dry_run=True),
        client.streams.delete("wine", dry_run=True),
        client.keys.create("ann", "viewer", dry_run=True),
    ]
    assert {type(a) for a in asked} == {record.DryRun}
    assert asked[0].effects == ["beer would be created"]
    assert asked[-1].changes == [{"action": "create", "kind": "key", "name": "ann"}]
    assert (client.system.export(), list(client.streams.list())) == before


def test_a_change_of_what_was_read_before_somebody_changed_it(client, wine):
    """The record holds what was read; a name holds nothing."""
    mine, theirs = client.apps.get("wine"), client.apps.get("wine")
    theirs.weight = 5
    theirs = client.apps.put(theirs)
    mine.weight = 6
    for change in (
        lambda: client.apps.put(mine),
        lambda: client.apps.update(mine, weight=6),
        lambda: client.apps.link(mine, "forest"),
        lambda: client.apps.delete(mine),
    ):
        with pytest.raises(topsail.Conflict, match="somebody has changed it meanwhile") as e:
            change()
        assert e.value.status == 412
    assert client.apps.get("wine").weight == 5
    assert client.apps.put(mine, if_match="*").weight == 6
    with pytest.raises(topsail.Conflict, match="send If-Match"):
        client.apps.put(record.App("wine", "doubles", 1000))


def test_names_with_anything_in_them(client, management):
    for name in ("a/b", "../x", "ü ?#", "%2e"):
        with pytest.raises(topsail.NotFound):
            client.apps.get(name)
    assert [h.path for h in management.heard] == [
        "/api/v1/apps/a%2Fb",
        "/api/v1/apps/..%2Fx",
        "/api/v1/apps/%C3%BC%20%3F%23",
        "/api/v1/apps/%252e",
    ]
    management.heard.clear()
    with pytest.raises(topsail.BadRequest, match="a name is empty"):
        client.apps.delete("")
    with pytest.raises(topsail.BadRequest, match="7 is no name, and has none"):
        client.apps.delete(7)
    assert management.heard == []


def test_what_cannot_be_sent(client):
    with pytest.raises(topsail.BadRequest, match="this cannot be sent"):
        client.apps.update("wine", weight=float("nan"))


# Repeating.


def test_creations_are_done_once_however_often_they_are_sent(client, management):
    """The connection breaks when the app has been made; the same request is sent again, and finds it there."""
    management.faults.extend([503, "cut"])
    assert client.apps.create("wine").name == "wine"
    assert management.did("POST") == ["POST /api/v1/apps"] * 3
    with pytest.raises(topsail.Conflict):
        client.apps.create("wine", weight=2)


def test_what_is_not_the_same_when_done_twice_is_sent_once(client, management):
    client.apps.create("wine")
    for ask in (lambda: client.replicas.restart("m-1"), lambda: client.models.rollback("m")):
        management.heard.clear()
        management.faults.append("cut")
        with pytest.raises(topsail.Unavailable):
            ask()
        assert len(management.heard) == 1


def test_a_deletion_that_was_heard_is_not_missed(client, management):
    client.apps.create("wine")
    management.faults.append("cut")
    assert client.apps.delete("wine") is None
    assert management.did("DELETE") == ["DELETE /api/v1/apps/wine"] * 2
    with pytest.raises(topsail.NotFound):
        client.apps.delete("wine")


def test_what_would_find_its_own_change_is_sent_once(client, management):
    wine = client.apps.create("wine")
    for change in (
        lambda: client.apps.put(wine),
        lambda: client.apps.put(record.App("beer", "doubles", 1000)),
        lambda: client.keys.create("ann", "viewer"),
    ):
        management.heard.clear()
        management.faults.append("cut")
        with pytest.raises(topsail.Unavailable):
            change()
        assert len(management.heard) == 1
    assert client.apps.get("beer").name == "beer"  # it was done all the same


def test_repeating_ends_with_the_time(client, management, clock):
    management.faults.extend([503] * 1000)
    with pytest.raises(topsail.Unavailable, match="not now") as e:
        client.apps.get("wine", timeout=30)
    assert 128 < clock.now < 130
    assert e.value.problem["status"] == 503


@pytest.mark.parametrize("how", [CUT, HANG])
def test_a_service_that_does_not_answer(how, connect):
    gateway = Gateway()
    gateway.always = how
    try:
        client = connect(admin_url=gateway.url)
        with pytest.raises((topsail.Timeout, topsail.Unavailable)):
            client.apps.get("wine", timeout=0.2)
        with pytest.raises((topsail.Timeout, topsail.Unavailable)):
            next(client.events(timeout=0.2))
    finally:
        gateway.stop()


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, {"title": "Bad", "detail": "a sentence", "code": "invalid"}, topsail.BadRequest),
        (401, {"title": "Bad", "detail": "a sentence"}, topsail.Unauthorized),
        (403, {"title": "Bad", "detail": "a sentence"}, topsail.Permission),
        (404, {"title": "a sentence"}, topsail.NotFound),
        (409, {"detail": "a sentence"}, topsail.Conflict),
        (412, {"detail": "a sentence"}, topsail.Conflict),
        (413, {"detail": "a sentence"}, topsail.BadRequest),
        (422, {"detail": "a sentence"}, topsail.BadRequest),
        (428, {"detail": "a sentence"}, topsail.Conflict),
        (500, {"detail": "a sentence"}, topsail.ServerError),
    ],
)
def test_problems_as_errors(status, body, error, connect):
    gateway = Gateway()
    gateway.always = status, body
    try:
        client = connect(admin_url=gateway.url, key="secret")
        for call in (lambda: client.apps.get("wine"), lambda: next(client.events())):
            with pytest.raises(topsail.TopsailError) as e:
                call()
            assert (type(e.value), str(e.value), e.value.status, e.value.problem) == (error, "a sentence", status, body)
            again = pickle.loads(pickle.dumps(e.value))
            assert (again.problem, again.code) == (body, body.get("code", ""))
        assert {h.headers["Authorization"] for h in gateway.heard} == {"Bearer secret"}
    finally:
        gateway.stop()


@pytest.mark.parametrize("body", [b"<html>", [], {}, {"name": 1, "other": 2}, {"items": [{}]}, {"items": 7}, None])
def test_answers_that_make_no_sense(body, connect):
    gateway = Gateway()
    gateway.always = 200, body
    try:
        client = connect(admin_url=gateway.url)
        for call in (lambda: client.apps.get("wine"), lambda: list(client.apps.list())):
            with pytest.raises(topsail.ServerError, match="this is no answer of Topsail's management"):
                call()
    finally:
        gateway.stop()


# Where it is.


def test_addresses_and_key_of_the_environment(monkeypatch, management, connect):
    monkeypatch.setenv("TOPSAIL_URL", "http://models.example:1")
    monkeypatch.setenv("TOPSAIL_ADMIN_URL", management.url)
    monkeypatch.setenv("TOPSAIL_API_KEY", "of-the-environment")
    connect().system.me()
    connect(key="given").system.me()
    shown = [h.headers["Authorization"] for h in management.heard]
    assert shown == ["Bearer of-the-environment", "Bearer given"]
    assert connect().url == "http://models.example:1"
    monkeypatch.setenv("TOPSAIL_API_KEY", "")
    connect().system.me()
    assert management.heard[-1].headers["Authorization"] is None


def test_an_address_that_is_none(connect):
    with pytest.raises(
        ValueError, match="'models' is no address of a management service: use one like http://127.0.0.1:1338"
    ):
        connect(admin_url="models")


# Streams.


def test_events(client, management):
    with client.events() as events:
        assert next(events) == ("hello", {"revision": 1, "me": {}})
        assert next(events).kind == "audit"
    assert list(events) == []


def test_events_end_with_the_service(client, management):
    events = client.events()
    assert [next(events).kind for _ in range(2)] == ["hello", "audit"]
    management.ended.set()
    assert list(events) == []


def test_logs_that_are_followed_until_they_are_closed(client, wine):
    """Closing from another thread ends the reading, also while it waits."""
    log = client.replicas.logs("forest-1-0", follow=True)
    assert [next(log) for _ in range(3)] == ["loading", "réady", "more"]
    read = []
    thread = threading.Thread(target=lambda: read.extend(log))
    thread.start()
    log.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_stream_that_says_nothing(connect):
    gateway = Gateway()
    gateway.always = 200, b"a\n", ("Content-Length", "1000")
    try:
        log = connect(admin_url=gateway.url).replicas.logs("r", follow=True, idle=PATIENCE)
        assert next(log) == "a"
        grow_impatient(log)
        with pytest.raises(topsail.Unavailable, match="the stream from .* broke: timed out"):
            next(log)
        assert list(log) == []
    finally:
        gateway.stop()


# The same, awaited.


def run(management, use):
    async def main():
        async with topsail.AsyncClient(management.url, admin_url=management.url, timeout=PATIENCE) as client:
            return await use(client)

    return asyncio.run(main())


def test_everything_awaited(management, streams):
    async def use(client):
        await client.artifacts.upload(BUNDLE)
        await client.versions.create("forest", "1", bundle=BUNDLE.digest)
        app = await client.apps.create("wine", models=["forest"])
        assert (await client.apps.get("wine")) == app
        assert [a.name async for a in client.apps.list()] == ["wine"]
        assert [e.id async for e in client.audit()] == [f"a{i}" for i in range(7)]
        assert [d.rule async for d in client.decisions()] == ["demand"]
        assert [u.kind async for u in client.usage()] == ["app", "version"]
        assert (await client.apps.usage("wine")).usage == (await client.versions.usage("forest", "1")).usage == 3
        assert [line async for line in client.replicas.logs("forest-1-0")] == ["loading", "réady"]
        assert [s.name async for s in client.streams.list()] == ["wine", "wine.models"]
        assert (await client.streams.suspend("wine")).suspension == {"since": TIME, "by": "ann"}
        assert (await client.streams.resume("wine")) == (await client.streams.get("wine"))
        assert (await client.streams.delete("wine")) is None
        assert isinstance(await client.apps.delete("wine", dry_run=True), record.DryRun)
        with pytest.raises(topsail.NotFound):
            await client.models.get("other")
        assert (await client.system.me()).mode == "local"
        assert {"get", "list", "create", "put"} <= set(dir(client.apps))
        with pytest.raises(AttributeError):
            _ = client.apps.nothing
        return app

    assert run(management, use).name == "wine"


def test_many_awaited_at_once(management):
    async def use(client):
        await asyncio.gather(*(client.apps.create(f"app-{i}") for i in range(20)))
        return [a.name async for a in client.apps.list(limit=4)]

    assert sorted(run(management, use)) == sorted(f"app-{i}" for i in range(20))


def test_streams_awaited(management):
    """One that is closed, one that is cancelled while it waits, and one that is left to the client's end."""

    async def use(client):
        async with client.events() as events:
            assert (await anext(events)).kind == "hello"
        assert [e async for e in events] == []
        waiting = client.events()
        for _ in range(2):
            await anext(waiting)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(waiting), 0.05)
        left = client.events()
        await anext(left)
        return left

    run(management, use)
