"""What clients of the Open Inference Protocol ask a chat: its request is a text of JSON."""

import json

ROWS = [json.dumps({"messages": [{"role": "user", "content": "The other list"}], "max_tokens": n}) for n in (3, 5)]


def check(texts):
    """Each answer is as long as its request wants it, and both are the same text."""
    short, long = texts
    assert (len(short), len(long)) == (3, 5) and long.startswith(short), texts
