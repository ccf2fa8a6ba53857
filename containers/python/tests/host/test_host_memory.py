"""What models of a host take, and that it goes when they are unloaded."""

import gc
import importlib
import os
import sys
import weakref

import pytest
from hosting import SUM, Host
from sidecar import environment

from topsail.runtime import modules


def test_what_a_model_takes_is_told(host):
    """An array of 64 MiB in a file, another that is computed, and a model that is next to nothing."""
    size = 64 << 20
    host.put("big", {"model.py": "DATA = open('weights', 'rb').read()\n" + SUM, "weights": bytes(size)})
    host.put("made", {"model.py": f"import itertools\nDATA = bytearray(itertools.repeat(1, {size // 2}))\n" + SUM})
    host.put("small", {"model.py": SUM})
    sidecar = host.accept()
    empty = sidecar.host.memory
    small = sidecar.load("small", version="small")
    assert (host.models / "small" / "model.py").stat().st_size <= small.memory < 4 << 20
    entry = sidecar.load("big", version="big")
    assert size <= entry.memory < size * 1.1
    assert size <= sidecar.host.memory - empty < size * 1.2
    made = sidecar.load("made", version="made")
    assert size / 2 <= made.memory < size * 0.6
    sidecar.unload(entry.id)
    assert sidecar.host.memory - empty < size * 0.6
    sidecar.unload(made.id)  # though its module and its function hold each other
    assert sidecar.host.memory - empty < size * 0.1
    assert sidecar.load("big", version="big").memory == pytest.approx(entry.memory, rel=0.1)


def test_what_was_loaded_goes_at_once(tmp_path, monkeypatch):
    """A module and its functions hold each other, and only the collector would find that."""
    (tmp_path / "model.py").write_text(
        "class Weights:\n    pass\n\nweights = Weights()\n\ndef predict(v):\n    return weights\n"
    )
    monkeypatch.delitem(sys.modules, "model", raising=False)
    gc.disable()
    try:
        with modules.entered(tmp_path, frozenset()) as own:
            weights = weakref.ref(importlib.import_module("model").weights)
        assert [m.__name__ for m in own] == ["model"] and weights() is not None
        modules.forget(own)
        assert weights() is None
    finally:
        gc.enable()


def test_libraries_are_nobodys_own(tmp_path):
    """The first that needs one must not look as if it took the most, or everything else would be unloaded for it."""
    (tmp_path / "large_library.py").write_text("import itertools\nDATA = bytearray(itertools.repeat(1, 32 << 20))")
    path = environment()["PYTHONPATH"] + os.pathsep + str(tmp_path)
    with Host(tmp_path, PYTHONPATH=path) as host:
        for n in ("first", "second"):
            host.put(n, {"model.py": "import large_library\nMINE = b'm' * (8 << 20)\n" + SUM})
        sidecar = host.accept()
        before = sidecar.host.memory
        takes = [sidecar.load(n, version=n).memory for n in ("first", "second")]
        assert all(7 << 20 < t < 10 << 20 for t in takes)
        assert sidecar.host.memory - before > 48 << 20
