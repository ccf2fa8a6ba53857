"""Has a Topsail call servers that others wrote: python services.py TOPSAIL KSERVE_PYTHON MLSERVER_PYTHON TRITON_PYTHON"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

here = pathlib.Path(__file__).resolve().parent
topsail, kserve_python, mlserver_python, triton_python = map(os.path.abspath, sys.argv[1:])
WITHIN = 60  # seconds, for each server to be ready

NUMBERS = 'input_type = "doubles"\n'
NAMED = """signature.inputs = [{ name = "x", type = "float32", shape = [-1] }]
signature.outputs = [{ name = "total", type = "float32", shape = [1] }]
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(name, argv, folder, cwd=here, **env):
    """A process, with its output in a file that is shown when something fails."""
    log = pathlib.Path(folder, f"{name}.log")
    with log.open("w") as out:
        process = subprocess.Popen(argv, cwd=cwd, env={**os.environ, **env}, stdout=out, stderr=out)
    try:
        yield process
    except BaseException:
        print(f"{name}:\n{log.read_text()[-4000:]}", file=sys.stderr)
        raise
    finally:
        process.terminate()
        process.wait(timeout=WITHIN)


def until(what, good):
    end = time.monotonic() + WITHIN
    while not good():
        assert time.monotonic() < end, f"not within {WITHIN} s: {what}"
        time.sleep(0.05)


def post(url, body):
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=10) as answer:
        return json.load(answer)


def app(name, addr, contract, default, extra=""):
    return f"""
[[model]]
name = "{name}"
version = "1"
{contract}service = {{ protocol = "oip", addrs = ["127.0.0.1:{addr}"], {extra} }}
[[app]]
name = "{name}"
{contract}default_output = '{default}'
latency_slo_micros = 2000000
models = ["{name}"]
cache = {{ off = true }}
"""


with tempfile.TemporaryDirectory() as folder:
    kserve, mlserver, triton, gateway, other = (free_port() for _ in range(5))
    settings = {"host": "127.0.0.1", "http_port": mlserver, "grpc_port": free_port(), "metrics_port": free_port()}
    served = pathlib.Path(folder, "mlserver")
    served.mkdir()
    for file in (here / "servers" / "mlserver").glob("*.*"):
        (served / file.name).write_text(file.read_text())
    (served / "settings.json").write_text(json.dumps(settings | {"parallel_workers": 0}))
    ports = [f"--{name}-addr=127.0.0.1:0" for name in ("web", "ops")] + ["--gateway-grpc-addr=none"]

    config = pathlib.Path(folder, "other.toml")
    config.write_text(f"""
[[model]]
name = "upper"
version = "1"
input_type = "strings"
command = ["{sys.executable}", "-m", "topsail", "models.py:upper"]
dir = "{here}"
[[app]]
name = "upper"
input_type = "strings"
default_output = "none"
latency_slo_micros = 2000000
models = ["upper"]
""")
    everything = pathlib.Path(folder, "topsail.toml")
    everything.write_text(
        app("kserve", kserve, NUMBERS, "-1", 'model = "total"')
        + app("kserve-named", kserve, NAMED, '{"total": [-1]}', 'model = "total"')
        + app("mlserver", mlserver, NUMBERS, "-1", 'model = "total"')
        + app("mlserver-named", mlserver, NAMED, '{"total": [-1]}', 'model = "total"')
        + app("triton", triton, NUMBERS, "-1", 'model = "total"')
        + app("triton-named", triton, NAMED, '{"total": [-1]}', 'model = "total"')
        + app("upper", other, 'input_type = "strings"\n', "none")
    )
    sdk = str(here.parent.parent / "containers" / "python" / "src")
    with (
        running("kserve", [kserve_python, "servers/kserve_server.py", str(kserve)], folder),
        running("mlserver", [mlserver_python, "-m", "mlserver.cli.main", "start", "."], folder, served, PYTHONPATH="."),
        running(
            "triton",
            [triton_python, "servers/triton_server.py", str(triton), str(free_port()), f"{folder}/triton"],
            folder,
        ),
        running(
            "another topsail",
            [
                topsail,
                "local",
                f"--config={config}",
                f"--data-dir={folder}/other",
                f"--gateway-addr=127.0.0.1:{other}",
                *ports,
            ],
            folder,
            PYTHONPATH=sdk,
        ),
        running(
            "topsail",
            [
                topsail,
                "local",
                f"--config={everything}",
                f"--data-dir={folder}/data",
                f"--gateway-addr=127.0.0.1:{gateway}",
                *ports,
            ],
            folder,
        ) as topsail_itself,
    ):
        base = f"http://127.0.0.1:{gateway}"

        def answered(name, body):
            try:
                return not post(f"{base}/{name}/predict", body)["default"]
            except OSError:
                assert topsail_itself.poll() is None
                return False

        def ready(name, body):
            until(name, lambda: answered(name, body))

        for server in ("kserve", "mlserver", "triton"):
            ready(server, {"input": [1, 2]})
            answer = post(f"{base}/{server}/predict", {"input": [1, 2.5, 4]})
            assert answer["output"] == 7.5 and not answer["default"], answer
            ready(server + "-named", {"inputs": {"x": [1]}})
            answer = post(f"{base}/{server}-named/predict", {"inputs": {"x": [0.5, 1]}})
            assert answer["outputs"] == {"total": [1.5]}, answer
            answer = post(f"{base}/{server}/predict", {"input": [0] * 13})
            assert answer["default"] and "thirteen" in answer["default_explanation"], answer
            answers = post(f"{base}/{server}/predict", {"input_batch": [[i, 1] for i in range(20)]})
            assert [a["output"] for a in answers["batch_predictions"]] == [i + 1 for i in range(20)], answers
        ready("upper", {"input": "a"})
        assert post(f"{base}/upper/predict", {"input": "bé"})["output"] == "BÉ"
print("services of KServe, MLServer, Triton and another Topsail: all as expected")
