"""Which processor an ONNX model runs on, by a module that has as much of onnxruntime as that takes."""

import sys
from types import SimpleNamespace

import pytest
from bundles import unpacked

from topsail.runtime.failure import PermanentFailure
from topsail.runtime.folder import Folder
from topsail.runtime.load import load

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


@pytest.fixture
def runtime(monkeypatch):
    """An onnxruntime with these providers, of which some can be loaded. It returns what it was asked for: to load the
    libraries of CUDA, and sessions."""

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
            preload_dlls=lambda: asked.append("the libraries of CUDA"),
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
    assert asked == ["the libraries of CUDA"] * (device != "cpu") + [providers]


@pytest.mark.parametrize(
    ("available", "says"),
    [
        ([CPU], r"0.fake is a build for the CPU: require onnxruntime-gpu\[cuda,cudnn\]; device=auto goes"),
        ([CUDA, CPU], "0.fake cannot use CUDA, for the reason in the log: use a node with a GPU"),
    ],
)
def test_it_does_not_go_on_with_the_cpu_in_silence(tmp_path, runtime, available, says):
    """Also where the provider is named, and its libraries cannot be loaded."""
    runtime(available, [CPU])
    with pytest.raises(PermanentFailure, match=f"device is cuda, and onnxruntime {says}"):
        load(folder(tmp_path, "cuda"))
    load(folder(tmp_path, "auto"))
    trial = folder(tmp_path, "cuda", trial=True)
    load(trial)
    assert trial.on_cpu_instead
