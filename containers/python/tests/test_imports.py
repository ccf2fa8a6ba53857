"""Which module imports which: downwards only, and never in a circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import topsail

ROOT = Path(topsail.__file__).parent

# Folders, and modules beside them, from the ground up: each imports what is in a line above it, or in its own folder.
LAYERS = (
    "version optional backoff",
    "protocol",
    "output metrics decider",
    "container",
    "bundle",
    "runtime client",
    "host deploy testing",
    "clipper cli",
    "__main__ topsail",
)


def name_of(file):
    parts = ("topsail", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(file): file for file in ROOT.rglob("*.py")}


def imported(name):
    """The modules of this package that one imports anywhere: within functions, and for type checkers, too."""
    package = name if FILES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                within = f"{source}.{alias.name}"
                if (found := within if within in FILES else source) in FILES:
                    yield found


IMPORTS = {name: set(imported(name)) for name in FILES}


def test_there_are_no_circles():
    """A circle raises CycleError, which names its modules."""
    assert len(list(TopologicalSorter(IMPORTS).static_order())) == len(FILES) > 150


def test_imports_point_down():
    at = {name: i for i, layer in enumerate(LAYERS) for name in layer.split()}
    folder = {name: [*name.split("."), name][1] for name in FILES}  # the package itself is its own
    assert set(folder.values()) == set(at)
    up = [
        f"{name} imports {other}"
        for name, others in IMPORTS.items()
        for other in others
        if folder[name] != folder[other] and at[folder[name]] <= at[folder[other]]
    ]
    assert up == []
