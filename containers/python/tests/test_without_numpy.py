"""The part of the suite that knows no processes, and a host, once more, without numpy."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = [
    "protocol/test_golden.py",
    "protocol/test_fuzz.py",
    "container/test_predict.py",
    "container/test_encoding.py",
    "container/test_input_type.py",
    "container/test_runner.py",
]
HOST = "host/test_host.py::test_a_model_is_loaded_asked_and_unloaded"


def test_the_same_without_numpy():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *(f"tests/{test}" for test in (*TESTS, HOST))],
        cwd=HERE.parent,
        env=os.environ | {"TOPSAIL_TEST_NO_NUMPY": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
