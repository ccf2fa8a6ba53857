"""Frames written by hand from docs/protocol.md."""

import pytest

from topsail.container.encoding import encode
from topsail.output import Output
from topsail.protocol import announce, bye, cancel, feedback, frame, hello, load, predict, reply, report
from topsail.protocol.announce import Announced
from topsail.protocol.cancel import Cancel
from topsail.protocol.constants import NO_DEADLINE, DType, Kind, Role, State, Status
from topsail.protocol.errors import ProtocolError
from topsail.protocol.feedback import Feedback
from topsail.protocol.frame import Assembler
from topsail.protocol.hello import Hello
from topsail.protocol.load import Load
from topsail.protocol.payload import Value
from topsail.protocol.report import COUNTER, HISTOGRAM, Series


def octets(text: str) -> bytes:
    return bytes.fromhex("".join(line.split("#")[0] for line in text.splitlines()))


def body_of(data: bytes) -> memoryview:
    [f] = Assembler().feed(data)
    return f.body


HELLO_OF_SIDECAR = octets("""
    1b000000 01 00 0000         # header
    54505332 00 02 0000         # TPS2, minor 0, sidecar
    0100000000000000 00000004   # LZ4, 64 MiB
    01 02000000 7363            # name "sc"
""")

HELLO_OF_CONTAINER = octets("""
    2f000000 01 00 0000
    54505332 00 03 0000
    0000000000000000 00000004
    01 02000000 7231            # name "r1"
    02 03000000 746f6b          # token "tok"
    03 07000000 73646b2f302e31  # software "sdk/0.1"
""")

ANNOUNCE = octets("""
    1c000000 02 00 0000
    01000000                    # one entry
    14000000 01000000 02 04 0000 0d000000   # id 1, ready, doubles, of length 13
    04 77696e65  01 31  00      # "wine", "1", no stage
""")

ANNOUNCE_OF_STAGE = octets("""
    30000000 02 00 0000
    01000000                    # one entry
    28000000 01000000 01 05 0000 00000000   # id 1, loading, strings of any length
    01 6d  01 31  01 62                     # "m", "1", stage "b"
    01 11000000                             # the pipeline:
    5b7b226e616d65223a2262227d5d202020      # [{"name":"b"}] and spaces, which JSON allows
""")

ANNOUNCE_OF_HOST = octets("""
    52000000 02 00 0000
    02000000                    # two entries
    22000000 00000000 02 00 0000 00000000   # id 0, ready, any input
    05 736d616c6c  01 31  00                # "small", "1", no stage
    03 08000000 0000000200000000            # memory: 32 MiB
    24000000 09000000 00 00 0000 00000000   # id 9, gone
    03 616e6e  01 32  00                    # "ann", "2"
    02 0c000000 6e6f206d6f64656c2e706b6c    # reason "no model.pkl"
""")

ANNOUNCE_OF_CONCURRENT = octets("""
    25000000 02 00 0000
    01000000                    # one entry
    1d000000 01000000 02 05 0000 00000000   # id 1, ready, strings of any length
    04 63686174  01 31  00      # "chat", "1", no stage
    05 04000000 08000000        # concurrency 8
""")

CANCEL = octets("0c000000 05 00 0000 0700000000000000 ffffffff")  # batch 7, all inputs

PART = octets("""
    2f000000 04 00 0000                     # and not END
    0700000000000000 00000000 00000000 00000000 01000000   # batch 7, one entry
    13000000 00000000 00 00 0000            # input 0, ok, not the last
      0100 10 00 00 00 01000000 61          # "a"
""")

LOAD = octets("""
    35000000 0b 00 0000
    01000000                        # one entry
    2d000000 04 000000 02000000     # 2 doubles
    03 616e6e  01 31                # "ann", "1"
    01 09000000 7368613235363a3030  # bundle "sha256:00"
    03 05000000 61622f6364          # folder "ab/cd"
    04 02000000 7b7d                # batch {}
""")

LOAD_BY_ADDRESS = octets("""
    33000000 0b 00 0000
    01000000                            # one entry
    2b000000 00 000000 00000000         # any input
    03 616e6e  01 31                    # "ann", "1"
    01 09000000 7368613235363a3030      # bundle "sha256:00"
    02 0a000000 687474703a2f2f682f62    # URL "http://h/b"
""")

UNLOAD = octets("04000000 0c 00 0000 09000000")

PREDICT = octets("""
    52000000 03 00 0000
    0700000000000000 01000000 02000000      # batch 7, model 1, two inputs
    22000000 ffffffff                       # no deadline
      0100 05 01 00 00 02000000 10000000    # one float64 vector of 2 elements
      000000000000f83f 00000000000000c0     # 1.5, -2.0
    18000000 88130000                       # 5 ms left
      0100 10 00 00 00 02000000 6869        # "hi"
      01 03000000 626f62                    # user "bob"
""")

FEEDBACK = octets("""
    5e000000 0a 00 0000
    01000000 02000000               # model 1, two entries
    16000000
      0100 10 00 00 00 01000000 78  # the input "x"
      0100 06 00 00 00 01000000 01  # the label true
    38000000
      0100 05 01 00 00 01000000 08000000 000000000000f83f   # the input [1.5]
      0100 10 00 00 00 03000000 636174                      # the label "cat"
      01 03000000 616e6e                                    # user "ann"
      02 08000000 efcdab8967452301                          # query id
""")

REPLY = octets("""
    5f000000 04 02 0000                     # END
    0700000000000000 00000000 00000000 dc050000 02000000   # batch 7, nothing waits, 1500 us, two entries
    27000000 00000000 00 01 0000            # input 0, ok, last
      0100 05 00 00 00 08000000 0000000000000440           # 2.5
      01 08000000 000000000000e83f          # confidence 0.75
    18000000 01000000 01 01 0000            # input 1, model error, last
      0e00 56616c75654572726f723a206e6f     # "ValueError: no"
""")

BYE = octets("09000000 09 00 0000 0700 73746f70706564")

METRICS = octets("""
    65000000 80 00 0000
    02000000
    1e000000 01 04 68697473                 # counter "hits"
      0100 04 6b696e64 0100 61              # kind="a"
      0000000000000840  01 01000000 68      # 3.0, help "h"
    3b000000 03 05 7461736b73 0000          # histogram "tasks", no labels
      0300000000000000 0000000000000c40 0200             # 3 values, their sum 3.5, two buckets
      000000000000f03f 0200000000000000     # 2 up to 1.0
      0000000000000040 0300000000000000     # 3 up to 2.0
""")


def test_hello_is_read():
    got = hello.decode(body_of(HELLO_OF_SIDECAR))
    assert got == Hello(role=Role.SIDECAR, features=1, max_frame=64 << 20, name="sc")


def test_hello_is_written():
    mine = Hello(role=Role.CONTAINER, name="r1", token=b"tok", software="sdk/0.1")
    assert frame.encode(Kind.HELLO, mine.encode()) == HELLO_OF_CONTAINER
    assert hello.decode(body_of(HELLO_OF_CONTAINER)) == mine


def test_announce():
    entry = announce.Announced(1, State.READY, 4, 13, "wine", "1")
    assert frame.encode(Kind.ANNOUNCE, announce.encode(entry)) == ANNOUNCE
    assert announce.decode(body_of(ANNOUNCE)) == [entry]


def test_announce_of_a_stage():
    entry = announce.Announced(1, State.LOADING, 5, 0, "m", "1", "b", b'[{"name":"b"}]   ')
    assert frame.encode(Kind.ANNOUNCE, announce.encode(entry)) == ANNOUNCE_OF_STAGE
    assert announce.decode(body_of(ANNOUNCE_OF_STAGE)) == [entry]


def test_announce_of_a_host():
    entries = [
        announce.Announced(0, State.READY, 0, 0, "small", "1", memory=32 << 20),
        announce.Announced(9, State.GONE, 0, 0, "ann", "2", reason="no model.pkl"),
    ]
    assert frame.encode(Kind.ANNOUNCE, announce.encode(*entries)) == ANNOUNCE_OF_HOST
    assert announce.decode(body_of(ANNOUNCE_OF_HOST)) == entries


def test_a_reason_is_cut_between_two_characters():
    [entry] = announce.decode(memoryview(announce.encode(announce.Announced(1, 0, 0, 0, "", "", reason="é" * 600))))
    assert entry.reason == "é" * 512


@pytest.mark.parametrize(
    ("data", "entry"),
    [
        (LOAD, Load("ann", "1", 4, 2, "ab/cd", "sha256:00", batch=b"{}")),
        (LOAD_BY_ADDRESS, Load("ann", "1", bundle="sha256:00", url="http://h/b")),
    ],
)
def test_load(data, entry):
    assert frame.encode(Kind.LOAD, load.encode(entry)) == data
    assert load.decode(body_of(data)) == [entry]


def test_a_signature_is_loaded():
    entry = Load("ann", "1", 6, folder="ab/cd", signature='{"inputs":[]}')
    assert load.decode(memoryview(load.encode(entry))) == [entry]


def test_unload():
    assert frame.encode(Kind.UNLOAD, load.encode_unload(9)) == UNLOAD
    assert load.decode_unload(body_of(UNLOAD)) == 9


def test_predict_is_read():
    batch = predict.decode(body_of(PREDICT))
    assert (batch.batch, batch.model) == (7, 1)
    vector, text = batch.inputs
    assert vector.left == NO_DEADLINE
    [value] = vector.values
    assert (value.dtype, value.shape, bytes(value.data)) == (
        DType.FLOAT64,
        (2,),
        octets("000000000000f83f00000000000000c0"),
    )
    assert text.left == 5000
    [value] = text.values
    assert (value.dtype, value.shape, bytes(value.data)) == (DType.STRING, (), b"hi")


def test_reply():
    answer = reply.Reply(7, 64 << 20)
    answer.add_output(0, encode(Output(2.5, confidence=0.75)))
    answer.add_failure(1, Status.MODEL_ERROR, "ValueError: no")
    assert answer.finish(1500) == REPLY
    got = reply.decode(body_of(REPLY))
    assert (got.batch, got.service) == (7, 1500)
    assert [(e.index, e.status, e.last, e.confidence, e.message) for e in got.entries] == [
        (0, 0, True, 0.75, ""),
        (1, 1, True, None, "ValueError: no"),
    ]


def test_feedback():
    entries = [
        Feedback([Value(DType.STRING, (), b"x")], [Value(DType.BOOL, (), b"\1")]),
        Feedback([Value(DType.FLOAT64, (1,), octets("000000000000f83f"))], [Value(DType.STRING, (), b"cat")], "ann"),
    ]
    model, got = feedback.decode(body_of(FEEDBACK))
    assert (model, [e.user for e in got]) == (1, ["", "ann"])
    assert got == entries
    without_query_id = body_of(FEEDBACK)[:-13].tobytes()
    shorter = without_query_id.replace(b"\x38\0\0\0", b"\x2b\0\0\0")
    assert feedback.encode(1, entries) == shorter


def test_feedback_of_a_user_who_is_not_utf_8():
    with pytest.raises(ProtocolError, match="feedback user at byte 78: is not UTF-8"):
        feedback.decode(memoryview(body_of(FEEDBACK).tobytes().replace(b"ann", b"a\xffn")))


def test_announce_of_a_concurrent_container():
    entry = Announced(1, State.READY, 5, 0, "chat", "1", concurrency=8)
    assert frame.encode(Kind.ANNOUNCE, announce.encode(entry)) == ANNOUNCE_OF_CONCURRENT
    assert announce.decode(body_of(ANNOUNCE_OF_CONCURRENT)) == [entry]
    with pytest.raises(ProtocolError, match="announce concurrency at byte 33: 3 bytes are no u32"):
        announce.decode(
            memoryview(body_of(ANNOUNCE_OF_CONCURRENT).tobytes()[:-8].replace(b"\x1d", b"\x1c") + b"\3\0\0\0\1\2\3")
        )


def test_cancel():
    assert frame.encode(Kind.CANCEL, cancel.encode(Cancel(7, cancel.ALL))) == CANCEL
    assert cancel.decode(body_of(CANCEL)) == Cancel(7, cancel.ALL)
    with pytest.raises(ProtocolError, match="cancel at byte 0: 12 bytes are needed and 4 are left"):
        cancel.decode(memoryview(b"abcd"))


def test_a_part():
    assert reply.encode_part(7, 0, encode("a"), 65536) == PART
    [entry] = reply.decode(body_of(PART)).entries
    assert (entry.index, entry.status, entry.last) == (0, Status.OK, False)
    with pytest.raises(OverflowError, match="a part of 11 bytes cannot be sent"):
        reply.encode_part(7, 0, encode("a"), 46)


def test_who_takes_parts():
    assert predict.takes_parts(octets("04 08000000 0300000000000000"))
    assert predict.takes_parts(octets("01 01000000 62  04 08000000 0100000000000000"))
    assert not predict.takes_parts(octets("04 08000000 0200000000000000"))
    assert not predict.takes_parts(b"")
    with pytest.raises(ProtocolError, match="4 bytes are no u64"):
        predict.takes_parts(octets("04 04000000 01000000"))


def test_bye():
    assert frame.encode(Kind.BYE, bye.encode("stopped")) == BYE
    assert bye.decode(body_of(BYE)) == "stopped"


def test_metrics():
    series = [
        Series(COUNTER, "hits", (("kind", "a"),), "h", 3.0),
        Series(HISTOGRAM, "tasks", (), "", 3.5, 3, ((1.0, 2), (2.0, 3))),
    ]
    body, sent = report.encode(series, 1 << 20)
    assert sent == 2
    assert frame.encode(Kind.METRICS, body) == METRICS
    assert report.decode(body_of(METRICS)) == series


@pytest.mark.parametrize(("kind", "data"), [(Kind.DRAIN, "00000000 08 00 0000"), (Kind.PONG, "00000000 07 00 0000")])
def test_empty_frames(kind, data):
    assert frame.encode(kind) == octets(data)


@pytest.mark.parametrize(
    ("output", "data"),
    [
        (True, "0100 06 00 00 00 01000000 01"),
        (-2, "0100 03 00 00 00 08000000 feffffffffffffff"),
        (1.5, "0100 05 00 00 00 08000000 000000000000f83f"),
        ("é", "0100 10 00 00 00 02000000 c3a9"),
        ({"a": [1, 2.5, None]}, "0100 11 00 00 00 12000000 7b2261223a5b312c322e352c6e756c6c5d7d"),
        (
            Output(1, qualifiers={"k": "v"}),
            "0100 03 00 00 00 08000000 0100000000000000  02 0c000000 0100 10 00 01 00 6b 01000000 76",
        ),
    ],
)
def test_outputs(output, data):
    assert encode(output) == octets(data)
