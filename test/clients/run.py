"""Starts a Topsail and has clients of other servers ask it: python run.py TOPSAIL CLIENT.py=PYTHON ..."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
topsail, clients = sys.argv[1], [one.split("=") for one in sys.argv[2:]]
sdk = here.parent.parent / "containers" / "python" / "src"
WITHIN = 60  # seconds, for Topsail to be ready and for each client


def ready(process, log):
    """The addresses of Topsail's ports for HTTP and gRPC, once all replicas are there."""
    until = time.monotonic() + WITHIN
    while process.poll() is None and time.monotonic() < until:
        text = log.read_text()
        if "Stop with Ctrl-C" in text:
            return re.search(r"Gateway +http://(\S+)", text)[1], re.search(r"gRPC +(\S+)", text)[1]
        time.sleep(0.05)
    sys.exit(f"Topsail is not ready after {WITHIN} s:\n{log.read_text()}")


with tempfile.TemporaryDirectory() as folder:
    log = pathlib.Path(folder, "log")
    ports = [f"--{name}-addr=127.0.0.1:0" for name in ("gateway", "gateway-grpc", "web", "ops")]
    with log.open("w") as out:
        process = subprocess.Popen(
            [topsail, "local", f"--config={here / 'topsail.toml'}", f"--data-dir={folder}/data", *ports],
            env={**os.environ, "PYTHONPATH": str(sdk)},
            stdout=out,
            stderr=out,
        )
    try:
        addresses = ready(process, log)
        failed = [
            client
            for client, python in clients
            if subprocess.run([python, here / client, *addresses], timeout=WITHIN).returncode
        ]
    finally:
        process.terminate()
        process.wait(timeout=WITHIN)
sys.exit(f"these failed: {', '.join(failed)}" if failed else 0)
