"""Uses the library through ctypes, with a model that is a function in Python.

usage: library.py LIBRARY CONFIGURATION TOPSAIL
"""

import ctypes
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class Topsail:
    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        text, error = ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)
        for name, returns, takes in [
            ("version", ctypes.c_void_p, []),
            ("open", ctypes.c_uint64, [text, text, text, ctypes.c_int64, error]),
            ("predict", ctypes.c_void_p, [ctypes.c_uint64, text, text, ctypes.c_size_t, error]),
            ("feedback", ctypes.c_void_p, [ctypes.c_uint64, text, text, ctypes.c_size_t, error]),
            ("close", ctypes.c_int, [ctypes.c_uint64, error]),
            ("free", None, [ctypes.c_void_p]),
        ]:
            function = getattr(self.lib, f"topsail_{name}")
            function.restype, function.argtypes = returns, takes

    def take(self, pointer):
        try:
            return ctypes.string_at(pointer).decode()
        finally:
            self.lib.topsail_free(pointer)

    def call(self, name, *args):
        error = ctypes.c_void_p()
        result = getattr(self.lib, f"topsail_{name}")(*args, ctypes.byref(error))
        if error.value:
            raise RuntimeError(self.take(error.value))
        return result

    def ask(self, name, handle, app, body):
        body = json.dumps(body).encode()
        return json.loads(self.take(self.call(name, handle, app.encode(), body, len(body))))


def failure(call, *args):
    try:
        call(*args)
    except RuntimeError as e:
        return str(e)
    raise AssertionError("it did not fail")


def main(library, configuration, program):
    topsail = Topsail(library)
    assert topsail.take(topsail.lib.topsail_version())
    assert "check the path" in failure(topsail.call, "open", b"/nowhere.toml", None, program.encode(), 0)
    assert topsail.lib.topsail_open(b"/nowhere.toml", None, None, 0, None) == 0  # who asks for no error gets none
    data = str(Path(configuration).parent / "data-of-python")
    handle = topsail.call("open", configuration.encode(), data.encode(), program.encode(), 60_000)

    def one(n):
        p = topsail.ask("predict", handle, "double", {"input": [n]})
        assert p["output"] == 2 * n and not p["default"], p
        learned = topsail.ask("feedback", handle, "double", {"query_id": p["query_id"], "label": 2 * n})
        assert learned["received"] and learned["loss"] == 0, learned

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(200)))
    assert "check its spelling" in failure(topsail.ask, "predict", handle, "nothing", {"input": [1]})
    assert "input" in failure(topsail.ask, "predict", handle, "double", {})
    assert "is empty" in failure(topsail.call, "predict", handle, b"double", None, 10)
    assert "check its spelling" in failure(topsail.call, "predict", handle, None, b"{}", 2)

    # Closing waits for calls, and those that come later fail.
    answers, begun = [], threading.Barrier(9)

    def many():
        begun.wait()
        while True:
            try:
                answers.append(topsail.ask("predict", handle, "double", {"input": [1], "no_cache": True}))
            except RuntimeError as e:
                assert "is closed" in str(e), e
                return

    callers = [threading.Thread(target=many) for _ in range(8)]
    for c in callers:
        c.start()
    begun.wait()
    while len(answers) < 8:
        time.sleep(0.001)
    assert topsail.call("close", handle) == 0
    for c in callers:
        c.join()
    assert all(a["output"] == 2 for a in answers), answers
    assert "is closed" in failure(topsail.call, "close", handle)
    assert "is closed" in failure(topsail.call, "close", 12345)
    left = [p for p in os.listdir("/proc") if p.isdigit() and parent(p) == os.getpid()]
    assert not left, left
    print("ok")


def parent(pid):
    try:
        return int(Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


main(*sys.argv[1:])
