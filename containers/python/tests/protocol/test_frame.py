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
    sizes = [0, 1, 7, 300, 5000, 70_000]
    sent = [(rng.randrange(1, 200), rng.randbytes(rng.choice(sizes))) for _ in range(60)]
    stream = b"".join(frame.encode(kind, body) for kind, body in sent)
    for _ in range(30):
        assembler, got, at = Assembler(), [], 0
        while at < len(stream):
            cut = at + rng.choice([1, 3, 8, 9, 400, 20000, 200_000])
            got += [(f.kind, bytes(f.body)) for f in assembler.feed(stream[at:cut])]
            at = cut
        assert got == sent


@pytest.mark.parametrize("kept", [False, True])
def test_large_frames_are_read_into_memory_that_is_used_again_unless_an_input_is_kept(kept):
    rng = random.Random(2)
    sizes = [100_000, 600_000, 600_000, 600_000, 600_000, 3_000_000, 90_000, 18_000_000, 500_000]
    sent = [rng.randbytes(n) for n in sizes]
    stream = memoryview(b"".join(frame.encode(3, body) for body in sent))
    assembler, inputs, got, memories = Assembler(), [], [], []
    while stream:
        if assembler.room is not None:
            count = rng.randrange(1, len(assembler.room) + 1)
            count = min(count, len(stream))
            assembler.room[:count] = stream[:count]
            frames = assembler.filled(count)
        else:
            count = min(frame.READ, len(stream))
            frames = assembler.feed(bytes(stream[:count]))
        stream = stream[count:]
        for f in frames:
            assert f.body.readonly
            got.append(bytes(f.body) == sent[len(got)])
            memories.append(id(f.body.obj))
            if kept:
                inputs.append(f.body)
        f = None
    assert got == [True] * len(sent)
    assert [bytes(x) == body for x, body in zip(inputs, sent, strict=False)] == [True] * len(inputs)
    assert (memories[2] == memories[4]) == (not kept)
    assert len(assembler._large) < 1 << 24


def test_a_large_frame_takes_memory_as_it_comes():
    assembler = Assembler()
    assert list(assembler.feed(pack("<IBBH", 60 << 20, 3, 0, 0) + b"x" * 100)) == []
    taken = [len(assembler._large)]
    for _ in range(2):
        assert list(assembler.filled(len(assembler.room))) == []
        taken.append(len(assembler._large))
    assert taken == [1 << 20, 16 << 20, 8 + (60 << 20)]


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
