"""A session of somebody with a function, at the Topsail that the environment names."""

import time

import topsail

MARK = "!"


def shout(texts):
    print("asked for", len(texts), flush=True)
    return [t.upper() + MARK for t in texts]


def until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def answers(deployment, output):
    return lambda: deployment.predict("hello", no_cache=True).output == output


client = topsail.Client()
try:
    topsail.deploy_python_function("shout", lambda texts: [t.no_such_method() for t in texts], example="hey", progress=False)
    raise AssertionError("a function that fails on its example was deployed")
except topsail.DeployFailed as e:
    assert "no_such_method" in str(e), e
assert not list(client.models.list()) and not list(client.artifacts.list())

lines = []
first = topsail.deploy_python_function("shout", shout, example="hey", progress=lines.append, slo=2)
assert first.version == "1" and first.predict("hey").output == "HEY!" and not first.predict("hey").default
assert any("tried here" in line for line in lines) and any("is ready" in line for line in lines), lines

again = topsail.deploy_python_function("shout", shout, example="hey", progress=False)
assert again.version == "1", "the same function became another version"

first.scale(2)
until(lambda: [r.state for r in first.replicas] == ["ready", "ready"])
until(lambda: "asked for 1" in first.logs())

MARK = "?"
second = topsail.deploy_python_function("shout", shout, example="hey", progress=False)
assert second.version == "2"
until(answers(second, "HELLO?"))

back = second.rollback()
assert back.version == "1"
until(answers(back, "HELLO!"))
until(lambda: client.models.get("shout").serving == "1")

try:
    back.delete()
    raise AssertionError("the version that answers was deleted")
except topsail.Conflict as e:
    assert "roll back" in str(e), e
second.delete()
back.delete()
assert not list(client.models.list()) and not list(client.apps.list())
