"""A Topsail of its own."""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sdk = here.parent.parent / "containers" / "python" / "src"
WITHIN = 60  # seconds, for all that is waited for


def until(what, true):
    """Waits until something is true, and returns that."""
    end = time.monotonic() + WITHIN
    while not (found := true()):
        assert time.monotonic() < end, f"not within {WITHIN} s: {what}"
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def local(topsail, config):
    """Runs Topsail with a file of configuration. Its value is the addresses of its ports for HTTP, gRPC and metrics."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        ports = [f"--{name}-addr=127.0.0.1:0" for name in ("gateway", "gateway-grpc", "web", "ops")]
        with log.open("w") as out:
            process = subprocess.Popen(
                [topsail, "local", f"--config={config}", f"--data-dir={folder}/data", *ports],
                env={**os.environ, "PYTHONPATH": str(sdk)},
                stdout=out,
                stderr=out,
            )
        try:
            until("Topsail is ready", lambda: process.poll() is not None or "Stop with Ctrl-C" in log.read_text())
            text = log.read_text()
            yield [re.search(rf"{port} +(?:http://)?([0-9.:]+)", text)[1] for port in ("Gateway", "gRPC", "Metrics")]
        except BaseException:
            print(log.read_text())
            raise
        finally:
            process.terminate()
            process.wait(timeout=WITHIN)
