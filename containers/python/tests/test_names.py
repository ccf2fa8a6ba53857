"""The public names."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sidecar import environment

import topsail


def test_type_checkers_see_the_public_names():
    [block] = [node for node in ast.parse(Path(topsail.__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {name: node.module for node in block.body for name in _names(node)}
    modules = {name for name, module in seen.items() if module is None}
    assert {name: module for name, module in seen.items() if module} == topsail._HOME
    assert sorted(seen) == topsail.__all__
    assert modules <= set(topsail._MODULES)


def _names(node):
    """What an import brings: of a star, what its module has in __all__."""
    names = [alias.name for alias in node.names]
    return import_module(f"topsail.{node.module}").__all__ if names == ["*"] else names


def test_nothing_is_imported_before_it_is_used():
    code = "import sys, topsail; print(*sorted(m for m in sys.modules if m.startswith('topsail')))"
    said = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert said.stdout == "topsail\n"


IMPORT_ALL = """
import pkgutil, sys, topsail.{0} as role
for module in pkgutil.walk_packages(role.__path__, role.__name__ + "."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
print([name for name in sys.modules if name.startswith(("topsail.client", "topsail.clipper", "topsail.deploy"))])
"""


@pytest.mark.parametrize("role", ["container", "host", "protocol", "runtime"])
def test_containers_know_no_clients(role):
    command = [sys.executable, "-c", IMPORT_ALL.format(role)]
    said = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
