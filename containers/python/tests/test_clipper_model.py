"""What a folder of Clipper's deployers gets as its inputs."""

import sys

import cloudpickle
import numpy as np
import pytest

from topsail.clipper.model import Model


def test_bytes_are_signed_as_in_clippers_containers(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = lambda inputs: [f"{getattr(x, 'dtype', type(x).__name__)} {x[0]}" for x in inputs]  # noqa: E731
    (tmp_path / "func.pkl").write_bytes(cloudpickle.dumps(function))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    inputs = [np.frombuffer(b"\xff\x01", np.uint8), np.array([1.5]), np.array([7], np.int32), "text"]
    assert Model().predict(inputs) == ["int8 -1", "float64 1.5", "int32 7", "str t"]
