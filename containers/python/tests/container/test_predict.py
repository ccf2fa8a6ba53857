"""PREDICT frames that are right but unusual, and frames that are wrong, with the place where they are."""

from struct import pack

import pytest

from topsail.protocol import predict
from topsail.protocol.constants import DType
from topsail.protocol.errors import ProtocolError
from topsail.protocol.payload import Value
from topsail.protocol.predict import Input


def decode(body: bytes):
    return predict.decode(memoryview(body))


def one(payload: bytes, size: int | None = None) -> bytes:
    """A batch of one entry, whose size may be a lie."""
    entry = pack("<I", 1000) + payload
    return pack("<QII", 1, 1, 1) + pack("<I", len(entry) if size is None else size) + entry


VALUES = [
    Value(DType.FLOAT64, (2,), b"\1" * 16),
    Value(DType.UINT8, (0,), b""),
    Value(DType.STRING, (), b""),
    Value(DType.STRING, (), b"some text"),
    Value(DType.JSON, (), b"{}"),
    Value(DType.OPAQUE, (), b"\0\1"),
    Value(DType.FLOAT32, (2, 3), b"\2" * 24),
    Value(DType.INT64, (), b"\3" * 8),
    Value(DType.BOOL, (1, 1, 1, 1, 1, 1, 1, 1), b"\1"),
    Value(DType.INT32, (3,), b"\4" * 12, name="named"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype.name}{list(v.shape)}")
@pytest.mark.parametrize("behind", [b"", b"\1\3\0\0\0bob"], ids=["", "fields"])
def test_values_come_back(value, behind):
    body = predict.encode(1, 1, [Input(1000, [value])])
    body = body[:16] + pack("<I", len(body) - 20 + len(behind)) + body[20:] + behind
    [got] = decode(body).inputs
    assert got.left == 1000
    assert [v._replace(data=bytes(v.data)) for v in got.values] == [value]


def test_any_mixture_of_values_comes_back():
    inputs = [Input(i, VALUES[: i + 1]) for i in range(len(VALUES))] + [Input(0, [])] + [Input(9, [v]) for v in VALUES]
    got = [
        Input(i.left, [v._replace(data=bytes(v.data)) for v in i.values])
        for i in decode(predict.encode(5, 6, inputs)).inputs
    ]
    assert got == inputs


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "predict head at byte 0: 16 bytes are needed and 0 are left"),
        (pack("<QII", 1, 1, 0), "predict count at byte 12: 0 inputs"),
        (pack("<QII", 1, 1, 65537) + bytes(700000), "predict count at byte 12: 65537 inputs"),
        (pack("<QII", 1, 1, 60000) + bytes(100), "predict count at byte 12: 60000 inputs cannot be in 100 bytes"),
        (one(b"\1\0" + bytes(20), size=2000), "predict entry at byte 20: 2000 bytes are promised and 26 are left"),
        (one(b"", size=3) + bytes(9), "predict time left at byte 20: 4 bytes are needed and 3 are left"),
        (one(pack("<H", 999) + bytes(40)), "payload count at byte 26: 999 values are promised and 40 bytes are left"),
        (one(pack("<HBBBBI", 1, 99, 0, 0, 0, 0)), "value dtype at byte 26: 99 is unknown"),
        (one(pack("<HBBBBII", 1, 0, 1, 0, 0, 0, 0)), "value dtype at byte 26: 0 is unknown"),
        (one(pack("<HBBBBI", 1, 5, 9, 0, 0, 0)), "value dimensions at byte 27: 9 are too many"),
        (one(pack("<HBBBBII", 1, 17, 1, 0, 0, 0, 0)), "value dimensions at byte 27: 1 are too many for dtype 17"),
        (one(pack("<HBBBB", 1, 5, 0, 200, 0) + bytes(8)), "value name at byte 30: 200 bytes are promised and 8"),
        (one(pack("<HBBBB", 1, 5, 0, 1, 0) + b"\xff" + bytes(12)), "value name at byte 31: is not UTF-8"),
        (one(pack("<HBBBBII", 1, 5, 1, 0, 0, 2, 15) + bytes(16)), "value length at byte 38: 15 bytes are not those"),
        (one(pack("<HBBBBII", 1, 5, 1, 0, 0, 2, 16) + bytes(8)), "value data at byte 38: 16 bytes are promised and 8"),
        (one(pack("<HBBBBI", 1, 16, 0, 0, 0, 5) + b"text"), "value data at byte 34: 5 bytes are promised and 4"),
        (
            one(pack("<HBBBBIII", 1, 5, 2, 0, 0, 1 << 31, 1 << 31, 0)),
            "value length at byte 42: 0 bytes are not those of dtype 5",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(body, says):
    with pytest.raises(ProtocolError) as e:
        decode(body)
    assert str(e.value).startswith(says), str(e.value)


def test_an_entry_cannot_reach_into_the_next():
    good = predict.encode(1, 1, [Input(1, [VALUES[0]])] * 2)
    body = good[:16] + pack("<I", 26) + good[20:]  # the first entry ends inside of its own data
    with pytest.raises(ProtocolError, match="value data at byte 38: 16 bytes are promised and 8 are left"):
        decode(body)


def test_decoded_data_is_a_view_of_the_frame():
    body = predict.encode(1, 1, [Input(1, [VALUES[0]])])
    [got] = decode(body).inputs
    assert got.values[0].data.obj is body
