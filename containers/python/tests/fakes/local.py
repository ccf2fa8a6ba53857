"""Stands for `topsail local`: a fake at the address that the command line names, until SIGTERM.

TEST_TOPSAIL=fail ends at once, with words; =deaf starts, and answers nobody; =stubborn does not heed SIGTERM.
"""

import os
import signal
import sys

from management import Management

how = os.environ.get("TEST_TOPSAIL")
if how == "fail":
    sys.exit("topsail: the address is in use")
arguments = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
assert sys.argv[1] == "local" and arguments["--gateway-addr"] == arguments["--web-addr"]
assert arguments["--gateway-cache-bytes"] == "1000" and "TOPSAIL_API_KEY" not in os.environ
signal.signal(signal.SIGTERM, signal.SIG_IGN if how == "stubborn" else lambda *_: os._exit(0))
print("starting", flush=True)
if how != "deaf":
    Management(int(arguments["--web-addr"].partition(":")[2]))
while True:
    signal.pause()
