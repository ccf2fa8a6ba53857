"""Starts a Topsail and has clients of other servers ask it: python run.py TOPSAIL CLIENT.py=PYTHON ..."""

import os
import signal
import subprocess
import sys

from local import WITHIN, here, local


def fails(client, python, http, grpc):
    """Whether a client fails. One that hangs says where."""
    process = subprocess.Popen([python, here / client, http, grpc], env={**os.environ, "PYTHONFAULTHANDLER": "1"})
    try:
        return process.wait(WITHIN) != 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        process.wait()
        return True


topsail, clients = sys.argv[1], [one.split("=") for one in sys.argv[2:]]
with local(topsail, here / "topsail.toml") as (http, grpc, _):
    failed = [client for client, python in clients if fails(client, python, http, grpc)]
sys.exit(f"these failed: {', '.join(failed)}" if failed else 0)
