"""Measures a gateway with Triton's perf_analyzer: python perf_client.py HTTP GRPC, two addresses."""

import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

http_address, grpc_address = sys.argv[1:]
program = pathlib.Path(sysconfig.get_path("scripts"), "perf_analyzer")
cuda = pathlib.Path(sysconfig.get_path("purelib"), "nvidia", "cuda_runtime", "lib")
REQUESTS = 40


def measure(app, *options):
    """What it prints of so many requests to an app, none of which may fail."""
    run = subprocess.run(
        [program, "-m", app, "--request-count", str(REQUESTS), *options],
        env={**os.environ, "LD_LIBRARY_PATH": str(cuda)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=50,
    )
    said = f"{app} {options}:\n{run.stdout}"
    assert run.returncode == 0, said
    assert not re.search("error|fail|warning", run.stdout, re.IGNORECASE), said
    assert f"Request count: {REQUESTS}\n" in run.stdout, said
    assert float(re.search(r"throughput: ([\d.]+) infer/sec", run.stdout)[1]) > 0, said
    return run.stdout


# It begins to count at the server when some requests may have been answered.
for protocol, address in [("http", http_address), ("grpc", grpc_address)]:
    for app, *options in [
        ["iris"],
        ["iris-onnx", "-b", "3", "--async", "--concurrency-range", "4"],
        ["sum", "--shape", "input:4"],
        ["either", "--shape", "input:4"],
        ["iris", "-x", "1"],
        ["upper"],
    ]:
        said = measure(app, "-i", protocol, "-u", address, *options)
        batch = 3 if "-b" in options else 1
        assert batch * REQUESTS / 2 <= int(re.search(r"Inference count: (\d+)", said)[1]) <= batch * REQUESTS, said
measure("iris", "-i", "grpc", "-u", grpc_address, "--streaming")

with tempfile.TemporaryDirectory() as folder:
    request = {"model": "chat", "messages": [{"role": "user", "content": "The list type"}], "max_tokens": 3}
    payload = pathlib.Path(folder, "payload.json")
    payload.write_text(json.dumps({"data": [{"payload": [request]}]}))
    openai = ["--service-kind", "openai", "--endpoint", "openai/v1/chat/completions", "--async"]
    measure("chat", "-u", http_address, *openai, "--input-data", payload)
print("Triton's perf_analyzer: all as expected")
