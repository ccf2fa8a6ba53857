"""Models that are asked from the web UI."""

import time
from pathlib import Path

import topsail

HERE = Path(__file__).parent


def talk(messages):
    """Answers the first message by half, until the test lets it go on, and one about the end without one."""
    said = messages[-1]["content"]
    yield f"You said {said}, "
    yield f"which is message {len(messages)}. "
    try:
        while said == "no end":
            yield "And "
            time.sleep(0.05)
        until = time.monotonic() + 60
        while not (HERE / "go").exists() and time.monotonic() < until:
            time.sleep(0.02)
    except GeneratorExit:
        (HERE / "stopped").touch()
        raise
    for word in "That is all of the answer.".split():
        yield word + " "


def look(inputs):
    return [
        {
            "words": f"{x['prompt']}: {x['image'].shape[1]} by {x['image'].shape[0]}",
            "colour": x["image"].mean(axis=(0, 1)).astype("float32"),
        }
        for x in inputs
    ]


if __name__ == "__main__":
    topsail.serve_chat(talk)
