"""Finding the model that a command line names."""

import os
import sys

import pytest

from topsail.container import source
from topsail.container.source import SourceError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    (tmp_path / "neighbour.py").write_text("VALUE = 4\n")
    (tmp_path / "filed_model.py").write_text("from neighbour import VALUE\nclass A:\n    class B:\n        x = VALUE\n")
    (tmp_path / "needy.py").write_text("import a_module_that_is_not_installed\n")
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    before = os.getcwd()
    yield tmp_path
    os.chdir(before)


def test_a_module(folder):
    source.enter(str(folder))
    assert source.find("filed_model:A.B").x == 4


def test_a_file_elsewhere_with_its_neighbour(folder):
    source.enter(str(folder / "sub"))
    assert source.find("../filed_model.py:A").B.x == 4


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("filed_model", "'filed_model' names no model: write module:object or path/to/file.py:object"),
        (":A", "names no model"),
        ("filed_model:", "names no model"),
        ("nowhere:A", "there is no module 'nowhere'"),
        ("nowhere.py:A", "there is no file nowhere.py"),
        ("filed_model:C", "filed_model has no 'C'; it has VALUE, A"),
        ("filed_model:A.C", "filed_model has no 'A.C'; it has B"),
    ],
)
def test_what_is_not_there_is_named(folder, target, says):
    source.enter(str(folder))
    with pytest.raises(SourceError, match=says):
        source.find(target)


def test_a_module_that_the_module_misses_is_its_own_error(folder):
    source.enter(str(folder))
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_installed"):
        source.find("needy:A")


def test_a_folder_that_is_not_there(folder):
    with pytest.raises(SourceError, match="--chdir /nowhere: No such file"):
        source.enter("/nowhere")
