"""The records of the management client, which are written from the document of its API."""

import contract
import pytest
import records

from topsail.client.admin import record


def test_records_are_those_of_the_document():
    assert records.WRITTEN.read_text() == records.written(), "web/api/openapi.yaml says something else: make generate"


def test_a_member_of_the_document_is_all_that_it_takes(monkeypatch, tmp_path):
    text = contract.DOCUMENT.read_text()
    of_app = "        origin: {type: string, enum: [file, apply, api], readOnly: true}\n    AppStage:"
    assert of_app in text
    new = "        colours: {type: array, items: {type: string}, readOnly: true, description: 'of its icon'}\n"
    (tmp_path / "openapi.yaml").write_text(text.replace(of_app, new + of_app))
    monkeypatch.setattr(records, "DOCUMENT", tmp_path / "openapi.yaml")
    added = set(records.written().splitlines()) - set(records.WRITTEN.read_text().splitlines())
    assert added == {
        '    read_only: ClassVar[frozenset[str]] = frozenset({"colours", "origin"})',
        "    colours: list[str] | None = None  # of its icon",
    }


def test_what_is_required_comes_first():
    app = record.App("wine", "doubles", 1000, weight=2)
    assert app.to_send() == {"name": "wine", "input_type": "doubles", "latency_slo_micros": 1000, "weight": 2}
    with pytest.raises(TypeError):
        record.App("wine", "doubles", 1000, "of grapes")


def test_what_is_required_and_read_only_can_be_left_out():
    model = record.Model("forest")
    assert (model.current, model.previous, model.versions) == ("", None, [])


def test_members_that_are_never_sent():
    version = record.Version.of({"version": "1", "image": "forest:1", "origin": "api", "current": True})
    assert version.to_send() == {"version": "1", "image": "forest:1"}


def test_members_that_are_not_shown():
    key = record.Key.of({"id": "1", "name": "ann", "role": "viewer", "created": "2030", "secret": "s"})
    assert repr(key) == "Key(id='1', name='ann', role='viewer', created='2030', secret=…)"
    assert key.to_dict()["secret"] == "s"


def test_members_that_have_other_names_here():
    said = {"model": "m", "version": "1", "at": "2030", "rule": "r", "reason": "", "outcome": "", "from": 1, "to": 2}
    decision = record.Decision.of(said)
    assert (decision.before, decision.after, decision.to_dict()) == (1, 2, said)
    said = {"id": "1", "at": "2030", "who": "ann", "action": "create", "kind": "app", "name": "wine"}
    assert record.AuditEntry.of(said).address == ""
    assert record.AuditEntry.of(said | {"from": "10.0.0.1"}).address == "10.0.0.1"


def test_members_that_are_not_known_yet():
    app = record.App.of({"name": "wine", "input_type": "doubles", "latency_slo_micros": 1, "colour": "red"})
    assert (app.more, app.to_send()["colour"]) == ({"colour": "red"}, "red")
    assert repr(app) == "App(name='wine', input_type='doubles', latency_slo_micros=1, colour='red')"
