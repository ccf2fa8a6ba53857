"""The public names, and the paths that modules had in former releases."""

import ast
import json
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sidecar import environment

import topsail
from topsail import former_paths

# What a model may have pickled by name, as the release before the modules were arranged by role did.
PICKLED = {
    "topsail.output Output": "topsail.output",
    "topsail.output Drop": "topsail.output",
    "topsail.metrics counter": "topsail.metrics",
    "topsail.client Client": "topsail.client.sync",
    "topsail.client_async AsyncClient": "topsail.client.aio",
    "topsail.client_answers Prediction": "topsail.client.answers",
    "topsail.client_errors Timeout": "topsail.client.errors",
    "topsail.client_requests Feedback": "topsail.client.requests",
    "topsail.admin.record App": "topsail.client.admin.record",
    "topsail.bundle BundleError": "topsail.bundle",
    "topsail.clipper.names ClipperNames": "topsail.client.clipper",
    "topsail.clipper.model Model": "topsail.clipper.model",
    "topsail.deploy.failure DeployFailed": "topsail.deploy.failure",
    "topsail.input_type BadInput": "topsail.container.input_type",
    "topsail.life SidecarGone": "topsail.container.lifecycle",
    "topsail.loading WarmUpFailed": "topsail.container.loading",
    "topsail.pipeline.pipeline Pipeline": "topsail.container.pipeline.pipeline",
    "topsail.pipeline.stage PipelineError": "topsail.container.pipeline.stage",
    "topsail.rehearsal Answer": "topsail.container.dry_run",
    "topsail.serving serve": "topsail.container.serving",
    "topsail.settings SettingsError": "topsail.container.settings",
    "topsail.source SourceError": "topsail.container.source",
    "topsail.wire.constants Status": "topsail.protocol.constants",
    "topsail.wire.payload Value": "topsail.protocol.payload",
}


def read(reference: str):
    """What a pickle that names this is read as."""
    return pickle.loads(f"c{reference.replace(' ', chr(10))}\n.".encode())


@pytest.mark.parametrize("reference", PICKLED)
def test_a_pickle_of_a_former_release_is_read(reference):
    found = read(reference)
    assert found.__module__ == PICKLED[reference]
    assert found is getattr(import_module(PICKLED[reference]), found.__name__)


def test_a_pickle_is_read_in_a_new_process():
    code = (
        "import json, pickle, sys\n"
        "print(json.dumps([pickle.loads(p.encode()).__module__ for p in json.loads(sys.argv[1])]))"
    )
    pickles = json.dumps([f"c{reference.replace(' ', chr(10))}\n." for reference in PICKLED])
    said = subprocess.run([sys.executable, "-c", code, pickles], env=environment(), capture_output=True, check=True)
    assert json.loads(said.stdout) == list(PICKLED.values())


def test_a_module_is_the_same_by_both_paths():
    from topsail.admin import record as former

    from topsail.client.admin import record

    assert former is record
    assert record.__name__ == record.__spec__.name == "topsail.client.admin.record"


def test_former_paths_lead_to_modules():
    for former, present in former_paths._PRESENT.items():
        assert import_module(former) is import_module(present)
    with pytest.raises(ModuleNotFoundError, match=r"topsail\.nothing"):
        import_module("topsail.nothing")
    with pytest.raises(ModuleNotFoundError):
        import_module("topsail.wire.nothing")


def test_type_checkers_see_the_public_names():
    [block] = [node for node in ast.parse(Path(topsail.__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {name.name: node.module for node in block.body for name in node.names}
    modules = {name for name, module in seen.items() if module is None}
    assert {name: module for name, module in seen.items() if module} == topsail._HOME
    assert sorted(seen) == topsail.__all__
    assert modules <= set(topsail._MODULES)


def test_nothing_is_imported_before_it_is_used():
    code = "import sys, topsail; print(*sorted(m for m in sys.modules if m.startswith('topsail')))"
    said = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert said.stdout == "topsail topsail.former_paths\n"


IMPORT_ALL = """
import pkgutil, sys, topsail.{0} as role
for module in pkgutil.walk_packages(role.__path__, role.__name__ + "."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
print([name for name in sys.modules if name.startswith(("topsail.client", "topsail.clipper", "topsail.deploy"))])
"""


@pytest.mark.parametrize("role", ["container", "protocol", "runtime"])
def test_containers_know_no_clients(role):
    command = [sys.executable, "-c", IMPORT_ALL.format(role)]
    said = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
