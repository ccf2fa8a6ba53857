"""Frames with bytes changed, cut and put in: only ProtocolError may come out of a decoder."""

import random
from contextlib import suppress

import pytest
from test_golden import (
    ANNOUNCE,
    ANNOUNCE_OF_CONCURRENT,
    ANNOUNCE_OF_HOST,
    ANNOUNCE_OF_STAGE,
    BYE,
    CANCEL,
    FEEDBACK,
    HELLO_OF_CONTAINER,
    HELLO_OF_SIDECAR,
    LOAD,
    LOAD_BY_ADDRESS,
    METRICS,
    PREDICT,
    REPLY,
    UNLOAD,
)

from topsail.protocol import announce, bye, cancel, feedback, hello, load, predict, reply, report
from topsail.protocol.errors import ProtocolError
from topsail.protocol.frame import Assembler

DECODERS = {
    "hello": (hello.decode, [HELLO_OF_SIDECAR, HELLO_OF_CONTAINER]),
    "announce": (announce.decode, [ANNOUNCE, ANNOUNCE_OF_STAGE, ANNOUNCE_OF_HOST, ANNOUNCE_OF_CONCURRENT]),
    "cancel": (cancel.decode, [CANCEL]),
    "load": (load.decode, [LOAD, LOAD_BY_ADDRESS]),
    "unload": (load.decode_unload, [UNLOAD]),
    "predict": (predict.decode, [PREDICT]),
    "reply": (reply.decode, [REPLY]),
    "feedback": (feedback.decode, [FEEDBACK]),
    "bye": (bye.decode, [BYE]),
    "metrics": (report.decode, [METRICS]),
}
INTERESTING = (0, 1, 2, 8, 9, 16, 17, 127, 128, 255)


def mutate(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(5):
            case 0:
                out[at : at + 1] = bytes([rng.choice(INTERESTING)])
            case 1:
                out[at : at + 1] = rng.randbytes(1)
            case 2:
                out[at : at + 4] = rng.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, len(out))).to_bytes(4, "little")
            case 3:
                del out[at : at + rng.randrange(1, 9)]
            case 4:
                out[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(out)


@pytest.mark.parametrize("name", DECODERS)
def test_mutated_bodies(name):
    decode, golden = DECODERS[name]
    rng = random.Random(name)
    refused = 0
    for _ in range(4000):
        body = mutate(rng, rng.choice(golden)[8:])
        try:
            decode(memoryview(body))
        except ProtocolError as e:
            refused += 1
            assert 0 <= e.offset <= len(body)
    assert refused > 400  # the mutations do reach something


@pytest.mark.parametrize("compressed_allowed", [False, True])
def test_mutated_streams(compressed_allowed):
    rng = random.Random(7)
    golden = [HELLO_OF_SIDECAR, ANNOUNCE, PREDICT, REPLY, BYE, METRICS]
    for _ in range(4000):
        stream = b"".join(rng.choices(golden, k=2))
        stream = mutate(rng, stream)
        assembler = Assembler(max_frame=1 << 16)
        assembler.compressed_allowed = compressed_allowed
        try:
            for cut in range(0, len(stream), 97):
                for f in assembler.feed(stream[cut : cut + 97]):
                    assert len(f.body) <= 1 << 16
        except ProtocolError:
            pass


def test_random_bytes():
    rng = random.Random(11)
    for _ in range(4000):
        body = memoryview(rng.randbytes(rng.randrange(120)))
        for decode, _ in DECODERS.values():
            with suppress(ProtocolError):
                decode(body)
