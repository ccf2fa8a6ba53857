"""Which processor an ONNX model runs on, by a module that has as much of onnxruntime as that takes."""

import sys
from types import SimpleNamespace

import pytest
from bundles import unpacked

from topsail.runtime.folder import Folder
from topsail.runtime.load import load
from topsail.runtime.refusal import Refused

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


@pytest.fixture
def runtime(monkeypatch):
    """An onnxruntime with these providers, of which some can be loaded. It returns what sessions were asked for."""

    def runtime(available, loadable):
        asked = []

        def session(path, options, providers):
            asked.append(providers)
            tensor = SimpleNamespace(name="x", type="tensor(float)", shape=[None, 2])
            return SimpleNamespace(
                get_providers=lambda: [p for p in providers if p in loadable],
                get_inputs=lambda: [tensor],
                get_outputs=lambda: [tensor],
            )

        module = SimpleNamespace(
            __version__="0.fake",
            SessionOptions=SimpleNamespace,
            InferenceSession=session,
            get_available_providers=lambda: available,
        )
        monkeypatch.setitem(sys.modules, "onnxruntime", module)
        return asked

    return runtime


def folder(tmp_path, device, trial=False):
    return Folder(unpacked(tmp_path, "onnx", "m.onnx", {"m.onnx": b""}, options={"device": device}), trial)


@pytest.mark.parametrize(("device", "providers"), [("cpu", [CPU]), ("auto", [CUDA, CPU]), ("cuda", [CUDA, CPU])])
def test_where_there_is_a_gpu(tmp_path, runtime, device, providers):
    asked = runtime([CUDA, CPU], [CUDA, CPU])
    load(folder(tmp_path, device))
    assert asked == [providers]


@pytest.mark.parametrize("available", [[CPU], [CUDA, CPU]])
def test_it_does_not_go_on_with_the_cpu_in_silence(tmp_path, runtime, available):
    """Also where the provider is named, and its libraries cannot be loaded."""
    runtime(available, [CPU])
    with pytest.raises(Refused, match="device is cuda, and onnxruntime finds none here: use auto, or a node with"):
        load(folder(tmp_path, "cuda"))
    load(folder(tmp_path, "auto"))
    trial = folder(tmp_path, "cuda", trial=True)
    load(trial)
    assert trial.on_cpu_instead
