"""The pipelines of examples/pipeline, in one process and as a container."""

import importlib
import random
import sys
import zlib
from contextlib import suppress

import numpy as np
import pytest
from coordinator import Coordinator
from sidecar import HERE, Container

from topsail import Drop, Error
from topsail.container.dry_run import answer
from topsail.container.input_type import BYTES
from topsail.protocol.constants import Status

EXAMPLES = HERE.parents[2] / "examples" / "pipeline"


def imported(monkeypatch, folder, *names):
    """Modules of an example, which are forgotten after the test."""
    monkeypatch.syspath_prepend(str(folder))
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return [importlib.import_module(name) for name in names]


def test_scale_then_shift(monkeypatch):
    [example] = imported(monkeypatch, EXAMPLES, "pipeline")
    assert example.p.run_local([[x] for x in range(10)], input_type="doubles") == [x * 2 + 3 for x in range(10)]


def test_digits(monkeypatch, tmp_path):
    monkeypatch.setenv("DIGITS_MODELS", str(tmp_path))
    png, train, digits = imported(monkeypatch, EXAMPLES / "digits", "png", "train", "digits")
    monkeypatch.setattr(sys, "argv", ["train.py", str(tmp_path)])
    train.main()
    _, pictures, _, truth = train.split()
    pictures = [png.write(np.rint(x.reshape(8, 8) * (255 / 16))) for x in pictures]
    told = digits.p.run_local(pictures)
    assert np.mean([int(o.value) == t for o, t in zip(told, truth, strict=True)]) > 0.93
    wrong = digits.p.run_local([b"no picture", png.write(np.zeros((8, 8))), png.write(np.ones((9, 8))), b"x" * 64])
    assert [type(r) for r in wrong[:3]] == [Error, Drop, Error]
    assert [str(r) for r in wrong[:3]] == [
        "stage Decode: Error: this is no PNG",
        "stage Decode: the picture is blank",
        "stage Decode: Error: the picture is 8 by 9 pixels large, and not 8 by 8",
    ]

    with (
        Container(
            tmp_path, str(EXAMPLES / "digits" / "digits.py"), TOPSAIL_INPUT_TYPE="bytes", DIGITS_MODELS=str(tmp_path)
        ) as container,
        Coordinator(container.listener) as sidecar,
    ):
        sidecar.ready(4)
        queries = [sidecar.ask(p, BYTES) for p in pictures]
        served = [q.result(10) for q in queries]
        assert {e.status for e in served} == {Status.OK}
        assert [answer(e).output for e in served] == [int(o.value) for o in told]
        container.terminate()
        assert container.ends() == 0


# The PNG reader of the example: other programs write pictures with filters.


@pytest.fixture
def png(monkeypatch):
    return imported(monkeypatch, EXAMPLES / "digits", "png")[0]


def filtered(png, pixels, rng):
    """A PNG whose rows are filtered in all ways, and the picture in two pieces."""
    height, width = pixels.shape
    border = np.pad(pixels.astype(int), ((1, 0), (1, 0)))
    rows = b""
    for y in range(1, height + 1):
        how = rng.randrange(5)
        guesses = [
            png.predicted(how, border[y, x - 1], border[y - 1, x], border[y - 1, x - 1]) for x in range(1, width + 1)
        ]
        rows += bytes([how]) + ((border[y, 1:] - guesses) % 256).astype(np.uint8).tobytes()
    whole, packed = png.write(pixels), zlib.compress(rows)
    begin, end = whole.index(b"IDAT") - 4, whole.index(b"IEND") - 4
    pieces = [len(part).to_bytes(4, "big") + b"IDAT" + part + bytes(4) for part in (packed[:5], packed[5:])]
    return whole[:begin] + b"".join(pieces) + whole[end:]


def test_pictures_come_back(png):
    rng = random.Random(1)
    for _ in range(30):
        height, width = rng.randrange(1, 20), rng.randrange(1, 20)
        pixels = np.frombuffer(rng.randbytes(height * width), np.uint8).reshape(height, width)
        assert (png.read(png.write(pixels)) == pixels).all()
        assert (png.read(filtered(png, pixels, rng)) == pixels).all()


def test_pictures_that_are_none(png):
    rng = random.Random(2)
    good = png.write(np.arange(64, dtype=np.uint8).reshape(8, 8))
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(ValueError):
            assert png.read(bytes(data[: rng.randrange(len(data) + 1)])).size <= png.MOST


def test_a_picture_that_would_fill_the_memory(png):
    bomb = png.write(np.zeros((1000, 1000), np.uint8))
    small = bomb.replace((1000).to_bytes(4, "big") * 2, (8).to_bytes(4, "big") * 2)
    assert png.read(small).shape == (8, 8)
    with pytest.raises(ValueError, match="the picture is 4294967295 by 4294967295 pixels large"):
        png.read(bomb.replace((1000).to_bytes(4, "big") * 2, b"\xff" * 8))
