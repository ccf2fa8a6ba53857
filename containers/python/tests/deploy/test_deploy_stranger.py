"""A package that came from a URL, while an index has a stranger's of its name: pip installs both, each from here."""

import http.server
import json
import os
import subprocess
import sys
import threading
import zipfile
from functools import partial
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"

# Packs a function that asks who wrote a package, with what it requires of an index.
PACKS = """
import sys
from pathlib import Path
from topsail.deploy import packing
from topsail.deploy.example import read
from topsail.deploy.python import frozen_function
from topsail.deploy.terms import Terms
import privpkg, shared

def predict(inputs):
    return [f"{privpkg.author()} and {shared.author()}" for _ in inputs]

frozen, entry = frozen_function(predict)
bundle = packing.pack("python", entry, frozen, read([1.5], "doubles"), 0, {}, Terms())
bundle.unpack(Path(sys.argv[1]))
print(*bundle.manifest.requirements)
"""


def wheel(folder: Path, name: str, source: str, requires: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD"
    with zipfile.ZipFile(path, "w") as zipped:
        for file, text in files.items():
            zipped.writestr(file, text)
        zipped.writestr(record, "".join(f"{file},,\n" for file in [*files, record]))
    return path


@pytest.fixture
def served(tmp_path):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(*arguments, path):
    here = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    place = os.pathsep.join(map(str, [SOURCES, *path]))
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=here | {"PYTHONPATH": place},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_strangers_package_is_not_run(tmp_path, served):
    ours = wheel(tmp_path / "ours", "privpkg", "def author():\n    return 'us'\n")
    wheel(tmp_path / "index", "privpkg", "def author():\n    return 'a stranger'\n")
    shared = "from privpkg import author\n"
    wheel(tmp_path / "index", "shared", shared, "Requires-Dist: privpkg\n")  # which brings the stranger's along
    install = ["-m", "pip", "install", "-q", "--no-index", "--find-links", tmp_path / "index", "--target"]
    run(*install, tmp_path / "here", f"{served}/ours/{ours.name}", "shared", path=[])

    script = tmp_path / "packs.py"
    script.write_text(PACKS)
    required = run(script, tmp_path / "bundle", path=[tmp_path / "here"]).split()
    names = {r.partition("==")[0] for r in required}
    assert names == {"cloudpickle", "shared"}

    run(*install, tmp_path / "there", "shared", path=[])
    assert "stranger" in (tmp_path / "there/privpkg/__init__.py").read_text()
    run("-m", "topsail.runtime.trial", tmp_path / "bundle", tmp_path / "answer", path=[tmp_path / "there"])
    assert json.loads((tmp_path / "answer").read_text())["output"] == "'us and us'"
