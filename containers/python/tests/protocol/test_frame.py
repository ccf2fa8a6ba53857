"""Frames from a stream that is cut anywhere, and from one that lies."""

import random
from struct import pack

import pytest

from topsail.optional import lz4_block
from topsail.protocol import frame
from topsail.protocol.errors import ProtocolError
from topsail.protocol.frame import Assembler


def test_frames_come_out_whole_however_the_stream_is_cut():
    rng = random.Random(1)
    sent = [(rng.randrange(1, 200), rng.randbytes(rng.choice([0, 1, 7, 300, 5000]))) for _ in range(60)]
    stream = b"".join(frame.encode(kind, body) for kind, body in sent)
    for _ in range(30):
        assembler, got, at = Assembler(), [], 0
        while at < len(stream):
            cut = at + rng.choice([1, 3, 8, 9, 400, 20000])
            got += [(f.kind, bytes(f.body)) for f in assembler.feed(stream[at:cut])]
            at = cut
        assert got == sent


def test_a_whole_frame_is_not_copied():
    data = frame.encode(3, b"x" * 1000)
    [f] = Assembler().feed(data)
    assert f.body.obj is data
    assert f.body.readonly


def test_a_body_put_together_from_pieces_is_read_only():
    assembler = Assembler()
    data = frame.encode(3, b"x" * 1000)
    assert list(assembler.feed(data[:500])) == []
    [f] = assembler.feed(data[500:])
    assert f.body.readonly


def test_a_frame_above_the_limit_is_refused_by_its_header():
    with pytest.raises(ProtocolError, match="frame size at byte 0: 1001 bytes are more than the 1000 allowed"):
        list(Assembler(max_frame=1000).feed(pack("<IBBH", 1001, 3, 0, 0)))


def test_memory_is_not_taken_for_a_promise():
    assembler = Assembler()
    assert list(assembler.feed(pack("<IBBH", 60 << 20, 3, 0, 0) + b"x" * 100)) == []
    assert len(assembler._pending) == 108
    assert assembler.wants() == 1 << 20


def test_a_compressed_body_must_have_been_agreed_on():
    with pytest.raises(ProtocolError, match="was not agreed on"):
        list(Assembler().feed(frame.encode(3, b"1234", flags=1)))


class FakeLZ4:
    """Stands in where the module is missing: a block is the raw bytes, reversed."""

    @staticmethod
    def decompress(data, uncompressed_size):
        if bytes(data) == b"broken":
            raise ValueError("corrupt block")
        return bytes(data)[::-1]

    @staticmethod
    def compress(data, store_size):
        return data[::-1]


@pytest.fixture(params=["fake", "real"] if lz4_block else ["fake"])
def lz4(request, monkeypatch):
    module = FakeLZ4 if request.param == "fake" else lz4_block
    monkeypatch.setattr(frame, "lz4_block", module)
    return module


def unpack(raw_size, block, max_frame=1 << 20):
    assembler = Assembler(max_frame)
    assembler.compressed_allowed = True
    [f] = assembler.feed(frame.encode(3, pack("<I", raw_size) + block, flags=1))
    return bytes(f.body)


def test_compressed(lz4):
    raw = b"abc" * 500
    assert unpack(len(raw), lz4.compress(raw, store_size=False)) == raw


def test_compressed_body_that_lies_about_its_size(lz4):
    block = lz4.compress(b"abc" * 500, store_size=False)
    for raw_size in (0, 1499, 1501, 1 << 20, 0xFFFFFFFF):
        with pytest.raises(ProtocolError):
            unpack(raw_size, block)


def test_compressed_body_that_is_broken(lz4):
    for block in (b"", b"broken"):
        with pytest.raises(ProtocolError):
            unpack(100, block)


def test_compressed_body_without_a_raw_size():
    assembler = Assembler()
    assembler.compressed_allowed = True
    with pytest.raises(ProtocolError, match="raw size at byte 0"):
        list(assembler.feed(frame.encode(3, b"12", flags=1)))
