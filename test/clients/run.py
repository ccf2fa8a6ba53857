"""Starts a Topsail and has clients of other servers ask it: python run.py TOPSAIL CLIENT.py=PYTHON ..."""

import subprocess
import sys

from local import WITHIN, here, local

topsail, clients = sys.argv[1], [one.split("=") for one in sys.argv[2:]]
with local(topsail, here / "topsail.toml") as (http, grpc, _):
    failed = [
        client
        for client, python in clients
        if subprocess.run([python, here / client, http, grpc], timeout=WITHIN).returncode
    ]
sys.exit(f"these failed: {', '.join(failed)}" if failed else 0)
