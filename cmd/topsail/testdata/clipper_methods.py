"""What the session in containers/python/tests/clipper leaves out of Clipper's own package: a Topsail that it starts and
stops itself, and the other methods. Arguments: the program, two free addresses, a folder for data, the source of that session."""

import inspect
import sys
import time
from pathlib import Path

import requests
import topsail
from clipper_admin import ClipperConnection
from topsail import bundle
from topsail.clipper import TopsailContainerManager

program, query, admin, data, session = sys.argv[1:]


def until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


manager = TopsailContainerManager(
    query_addr=query, admin_addr=admin, program=program, arguments=["--data-dir", data, "--ops-addr", "127.0.0.1:0"]
)
clipper = ClipperConnection(manager)
clipper.start_clipper(cache_size=1 << 20)


def sum_up(inputs):
    return [float(sum(x)) for x in inputs]


assert clipper.test_predict_function({"input": [1.0, 2.0]}, sum_up, "doubles") == [3.0]

text = b"def predict(inputs):\n    return [float(sum(x)) for x in inputs]\n"
packed = bundle.build(bundle.Manifest("python", "summing:predict", bundle.PYTHON, input_type="doubles"), {"summing.py": text})
digest = topsail.Client(admin_url=f"http://{admin}", timeout=30).artifacts.upload(packed).digest
clipper.deploy_model("sum", "1", "doubles", digest, num_replicas=2)
until(lambda: clipper.get_num_replicas("sum", "1") == 2)

replicas = clipper.get_all_model_replicas(verbose=True)
assert len(replicas) == 2, replicas
for one in replicas:
    assert (one["model_name"], one["model_version"], one["input_type"]) == ("sum", "1", "doubles"), one
    assert clipper.get_model_replica_info("sum", "1", one["model_replica_id"]) == one
assert clipper.get_model_replica_info("sum", "1", 99) is None

clipper.register_application("shop", "doubles", "-1.0", 1_000_000)
clipper.link_model_to_app("shop", "sum")
until(lambda: requests.post(f"http://{query}/shop/predict", json={"input": [1.0, 2.0]}, timeout=10).json()["output"] == 3.0)
assert clipper.inspect_instance()["counters"], "the query was not counted"

clipper.stop_all_model_containers()
until(lambda: clipper.get_num_replicas("sum", "1") == 0)

clipper.stop_all()
try:
    requests.get(f"http://{admin}/health", timeout=1)
    raise AssertionError("it is stopped and answers")
except requests.ConnectionError:
    pass

source = Path(session).read_text() + Path(__file__).read_text()
public = {name for name, _ in inspect.getmembers(ClipperConnection, inspect.isfunction) if not name.startswith("_")}
missing = {name for name in public if f"clipper.{name}(" not in source and f"connection.{name}(" not in source}
missing -= {"build_model", "build_and_deploy_model"}  # which build images
if missing:
    raise AssertionError(f"nobody calls {sorted(missing)}")
