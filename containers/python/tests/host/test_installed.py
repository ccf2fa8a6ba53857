"""What a host's environment has, against what bundles require."""

import pytest

from topsail.host import installed
from topsail.host.installed import Installed
from topsail.optional import find
from topsail.runtime.failure import PermanentFailure

HAVE = {"thing": "1.4.2", "other-thing": "2.0+cpu"}
MET = [
    "thing",
    "thing==1.4.2",
    "thing == 1.4.2",
    "other-thing==2.0",
    "thing[extra]==1.4.2",
    "thing==1.4.2; python_version >= '3.0'",
    "no-such-thing==1; python_version < '3.0'",
]
# By what packaging knows, and by what is compared without it.
ONLY_PACKAGING = {"thing>=2": False, "thing==1.4.2.0": True, "thing!=1.4.2": False, "thing==1.5.*": False}


@pytest.fixture(params=["packaging", "plain"])
def how(request, monkeypatch):
    found = find("packaging.requirements")
    assert found, "packaging comes with pytest"
    monkeypatch.setattr(installed, "_packaging", found if request.param == "packaging" else None)
    monkeypatch.setattr(installed, "_version", lambda name: HAVE.get(name, ""))
    return request.param


@pytest.mark.parametrize("requirement", MET)
def test_what_is_there(how, requirement):
    Installed().check([requirement])


@pytest.mark.parametrize(
    ("requirement", "says"),
    [
        ("thing==1.4.3", "thing==1.4.3 (there is 1.4.2)"),
        ("no-such-thing", "no-such-thing (it is not there)"),
        ("no-such-thing>=2", "no-such-thing>=2 (it is not there)"),
        ("thing==1.4; python_version >= '3.0'", "(there is 1.4.2)"),
    ],
)
def test_what_is_not(how, requirement, says):
    with pytest.raises(PermanentFailure) as e:
        Installed().check(["thing", requirement, "gone==1"])
    assert says in str(e.value) and "; gone==1 (it is not there). Install it there" in str(e.value)


@pytest.mark.parametrize("requirement", ONLY_PACKAGING)
def test_ranges_are_for_packaging(how, requirement):
    met = ONLY_PACKAGING[requirement]
    if how == "plain" and requirement == "thing==1.4.2.0":
        met = False  # another text
    if how == "plain" and not requirement.startswith("thing==1.4.2"):
        met = True  # it is there, and more is not known
    try:
        Installed().check([requirement])
    except PermanentFailure:
        assert not met
    else:
        assert met


def test_each_is_looked_up_once(monkeypatch):
    asked = []
    monkeypatch.setattr(installed, "_version", lambda name: asked.append(name) or "1")
    here = Installed()
    for _ in range(3):
        here.check(["a==1", "b==1"])
    assert asked == ["a", "b"]
