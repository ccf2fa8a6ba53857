"""Named inputs and outputs, as models get and return them."""

import json
import time

import pytest

from topsail import Output, Session
from topsail.container import loading
from topsail.container.dry_run import entries
from topsail.container.settings import SettingsError
from topsail.container.signature import Tensor, parse
from topsail.protocol import payload, predict
from topsail.protocol.constants import MAX_FRAME, NO_DEADLINE, DType, Status
from topsail.protocol.cursor import Cursor
from topsail.protocol.errors import ProtocolError
from topsail.protocol.field import encode_field
from topsail.protocol.payload import Value
from topsail.protocol.predict import Input

numpy = pytest.importorskip("numpy")

SIGNATURE = parse(
    json.dumps(
        {
            "inputs": [{"name": "image", "type": "uint8", "shape": [-1, 2]}, {"name": "text", "type": "string"}],
            "outputs": [{"name": "score", "type": "float32"}, {"name": "words", "type": "string", "shape": [-1]}],
        }
    )
)


def answers(model, *inputs, signature=SIGNATURE, fields=b""):
    runner = loading.prepare(model, None, None, signature=signature)
    body = predict.encode(1, 1, [Input(NO_DEADLINE, values, fields) for values in inputs])
    return entries(runner.run(predict.decode(memoryview(body)), time.monotonic(), MAX_FRAME))


def query(*pixels, text="a b"):
    return [
        Value(DType.STRING, (), text.encode(), "text"),
        Value(DType.UINT8, (len(pixels) // 2, 2), bytes(pixels), "image"),
    ]


def test_inputs_and_outputs_have_names():
    def model(inputs):
        assert inputs[0]["image"].shape == (2, 2) and inputs[0]["image"].dtype == numpy.uint8
        return [Output({"words": x["text"].split(), "score": float(x["image"].sum())}, confidence=0.5) for x in inputs]

    (one,) = answers(model, query(1, 2, 3, 4))
    assert [v.name for v in one.values] == ["score", "words"] and one.confidence == 0.5
    assert numpy.frombuffer(one.values[0].data, "<f4")[0] == 10
    assert one.values[1].shape == (2,) and bytes(one.values[1].data) == b"\1\0\0\0a\1\0\0\0b"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([Value(DType.STRING, (), b"a", "text")], "takes 'image', 'text', and got 'text'"),
        (
            [Value(DType.INT32, (1, 2), bytes(8), "image"), Value(DType.STRING, (), b"", "text")],
            "uint8[-1,2], and is int32[1,2]",
        ),
        ([Value(DType.UINT8, (1, 3), bytes(3), "image"), Value(DType.STRING, (), b"", "text")], "and is uint8[1,3]"),
        ([Value(DType.UINT8, (1, 2), bytes(2), "image"), Value(DType.STRING, (), b"\xff", "text")], "'text': 'utf-8'"),
    ],
)
def test_other_inputs_are_refused(values, message):
    (one,) = answers(lambda inputs: pytest.fail("it was called"), values)
    assert one.status == Status.BAD_INPUT and message in one.message


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (3.0, "must be a dict with 'score', 'words', and is of type float"),
        ({"score": 1.0}, "missing: 'words'"),
        ({"score": 1.0, "words": [], "more": 1}, "unknown: 'more'"),
        ({"score": "x", "words": []}, "'score' must be float32"),
        ({"score": [1.0], "words": []}, "'score' must be float32, and has shape [1]"),
        ({"score": 1.0, "words": [1]}, "has a int"),
        ({"score": 1.0, "words": [["a"], ["b", "c"]]}, "differ in length"),
    ],
)
def test_other_outputs_are_errors_of_the_model(output, message):
    (one,) = answers(lambda inputs: [output], query(1, 2))
    assert one.status == Status.MODEL_ERROR and message in one.message


TYPES = {
    "bool": [True, False],
    "int8": [-128, 127],
    "int16": [-32768, 32767],
    "int32": [-(2**31), 2**31 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "uint8": [0, 255],
    "uint16": [0, 65535],
    "uint32": [0, 2**32 - 1],
    "uint64": [0, 2**64 - 1],
    "float16": [0.5, -65504.0],
    "bfloat16": [0.5, -2.0],
    "float32": [0.1, 3e38],
    "float64": [0.1, 1e300],
    "bytes": [b"", b"\xff\0"],
    "string": ["", "é"],
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("with_numpy", [True, False])
def test_every_type_comes_back_as_it_was(name, with_numpy, monkeypatch):
    if not with_numpy:
        monkeypatch.setattr("topsail.container.signature.numpy", None)
    dtype = {"uint64": "<u8", "bytes": object, "string": object}.get(name)
    given = numpy.array(TYPES[name], dtype) if with_numpy else TYPES[name]
    vector, one = Tensor("x", name, (-1,)), Tensor("x", name)
    sent = payload.decode(Cursor(memoryview(payload.encode([vector.write(given), one.write(given[1])]))))
    assert (
        list(vector.read(sent[0])) == pytest.approx(TYPES[name])
        if "float" in name
        else list(vector.read(sent[0])) == TYPES[name]
    )
    assert one.read(sent[1]) == (pytest.approx(TYPES[name][1]) if "float" in name else TYPES[name][1])


def test_json_is_what_it_says():
    t = Tensor("x", "json")
    assert t.read(t.write({"a": [1, None]})) == {"a": [1, None]}


def test_numbers_are_not_narrowed_silently():
    with pytest.raises(TypeError, match="must be int32, and is float64"):
        Tensor("x", "int32").write(1.5)
    with pytest.raises(TypeError, match="must be int8, and is int64"):
        Tensor("x", "int8").write(numpy.int64(300))
    assert Tensor("x", "int8").write(numpy.int64(-3)).data == b"\xfd"


def test_one_output_needs_no_name():
    signature = parse('{"outputs":[{"name":"score","type":"float64","shape":[-1]}]}')
    plain = [Value(DType.FLOAT64, (2,), bytes(16))]
    for output in ([1.0, 2.0], numpy.array([1.0, 2.0]), {"score": [1.0, 2.0]}):
        (one,) = answers(lambda inputs, output=output: [output], plain, signature=signature)
        assert one.values[0].name == "score" and one.values[0].shape == (2,)


@pytest.mark.parametrize("data", [b"", b"\1\0\0", b"\2\0\0\0a", b"\1\0\0\0ab", b"\0\0\0\0\0"])
def test_strings_that_lie_about_their_length(data):
    with pytest.raises(ProtocolError):
        payload.decode(Cursor(memoryview(payload.encode([Value(DType.STRING, (1,), data)]))))
    with pytest.raises(ProtocolError):
        payload.decode(Cursor(memoryview(payload.encode([Value(DType.BLOB, (1 << 30,), data)]))))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"inputs":[{}]}', '{"inputs":[{"name":"x","type":"float8"}]}', '{"inputs":1}']
)
def test_signatures_that_are_none(text):
    with pytest.raises(ValueError, match="signature"):
        parse(text)


def test_a_model_that_declares_sessions_gets_them():
    seen = []

    def model(inputs, sessions):
        seen.extend(sessions)
        return [s.user for s in sessions]

    fields = encode_field(1, b"ann") + encode_field(9, b"?") + encode_field(6, b"shop")
    (one,) = answers(model, [Value(DType.FLOAT64, (1,), bytes(8))], signature=None, fields=fields)
    assert bytes(one.values[0].data) == b"ann" and seen == [Session("ann", "shop", None)]


class Stacked:
    batched = True

    def __init__(self):
        self.shapes = []

    def predict(self, inputs):
        self.shapes.append({name: x.shape for name, x in inputs.items()})
        words = [text.split() for text in inputs["text"]]
        return {"score": inputs["image"].sum(axis=(1, 2)).astype("float32"), "words": words}


def test_a_batched_model_gets_one_array_for_each_shape():
    model = Stacked()
    got = answers(model, query(1, 2, 3, 4), query(5, 6), query(7, 8, 9, 10, text="c"))
    scores = [numpy.frombuffer(a.values[0].data, "<f4")[0] for a in got]
    assert scores == [10, 11, 34] and got[2].values[1].shape == (1,)
    assert model.shapes == [{"image": (2, 2, 2), "text": (2,)}, {"image": (1, 1, 2), "text": (1,)}]


def test_a_batched_model_of_vectors_may_return_an_array_or_rows():
    for returned in (lambda x: x.sum(axis=1), lambda x: [float(v) for v in x.sum(axis=1)]):
        model = type("Sums", (), {"batched": True, "predict": staticmethod(returned)})
        vectors = [[Value(DType.FLOAT64, (n,), numpy.ones(n).tobytes())] for n in (2, 3, 2)]
        assert [numpy.frombuffer(a.values[0].data)[0] for a in answers(model, *vectors, signature=None)] == [2, 3, 2]


def test_a_batched_model_that_returns_too_few_fails_them_all():
    model = type("Few", (), {"batched": True, "predict": staticmethod(lambda x: x[:1].sum(axis=1))})
    vectors = [[Value(DType.FLOAT64, (1,), bytes(8))]] * 2
    first, second = answers(model, *vectors, signature=None)
    assert first.status == second.status == Status.OK  # one at a time it returns one
    model.predict = staticmethod(lambda x: 7)
    (only,) = answers(model, vectors[0], signature=None)
    assert "predict returned a int" in only.message


def test_sessions_need_a_version_that_has_them():
    with pytest.raises(SettingsError, match="session = true"):
        loading.prepare(lambda inputs, sessions: inputs, None, None, session=False)


def test_after_a_failed_batch_each_input_keeps_its_session():
    def model(inputs, sessions):
        if len(inputs) > 1:
            raise ValueError("one at a time")
        return [sessions[0].user]

    one = [Value(DType.FLOAT64, (1,), bytes(8))]
    runner = loading.prepare(model, None, None)
    inputs = [Input(NO_DEADLINE, one, encode_field(1, name)) for name in (b"ann", b"bob")]
    replies = entries(runner.run(predict.decode(memoryview(predict.encode(1, 1, inputs))), time.monotonic(), MAX_FRAME))
    assert [bytes(r.values[0].data) for r in replies] == [b"ann", b"bob"]
