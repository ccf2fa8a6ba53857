"""What is packed of a program's own classes."""

import sys
from types import ModuleType

import pytest

from topsail.deploy.frozen import freeze

CELL = """
import enum
from typing import Generic, TypeVar

T = TypeVar("T")

class Kind(enum.Enum):
    SUM = 1

class Base(Generic[T]):
    zeros = "0" * 64

    def __init__(self, k):
        self.k, self.kind = k, Kind.SUM

class Model(Base[int]):
    def predict(self, inputs):
        return [self.k + len(x) for x in inputs]
"""


@pytest.fixture
def run_cell(monkeypatch):
    """Runs the cell of a notebook, and says what it has defined."""
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)

    def run(cell=CELL):
        exec(compile(cell, "<cell>", "exec"), vars(notebook))
        return notebook

    return run


def test_an_unchanged_class_is_the_same_bundle(run_cell):
    first = freeze(run_cell().Model(3)).data
    assert freeze(sys.modules["__main__"].Model(3)).data == first
    assert freeze(run_cell().Model(3)).data == first
    assert freeze(run_cell().Model(4)).data != first
    assert freeze(run_cell(CELL.replace("self.k + len", "self.k - len")).Model(3)).data != first


def test_what_is_packed_is_not_written_to(run_cell):
    model = run_cell().Model(3)
    before = dict(vars(type(model)))
    freeze(model)
    assert all(vars(type(model))[name] is value for name, value in before.items())
