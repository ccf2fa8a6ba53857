"""Asks a gateway as users of Triton's client do: python triton_http.py HOST:PORT."""

import asyncio
import sys

import numpy as np
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

address = sys.argv[1]
client = triton.InferenceServerClient(address)


def vectors(rows, binary=True):
    x = triton.InferInput("input", list(rows.shape), "FP64")
    x.set_data_from_numpy(rows, binary_data=binary)
    return x


def refused(words, call, *args, **options):
    try:
        call(*args, **options)
    except InferenceServerException as e:
        assert words in e.message(), e
    else:
        raise AssertionError(f"not refused: {words}")


assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready("sum") and client.is_model_ready("sum", "1")
assert not client.is_model_ready("gone") and not client.is_model_ready("sum", "7")
assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
assert {m["name"] for m in client.get_model_repository_index()} == {"caption", "sum", "words"}
assert client.get_model_config("sum")["input"] == [{"name": "input", "data_type": "TYPE_FP64", "dims": [-1]}]
assert client.get_model_metadata("sum")["versions"] == ["1"]
shown = client.get_model_metadata("caption")
assert shown["inputs"][0] == {"name": "image", "datatype": "UINT8", "shape": [-1, -1, 2]}, shown

rows = np.array([[1, 2, 3], [4, 5, 6.5]])
for binary in (True, False):
    for compression in (None, "gzip", "deflate"):
        answer = client.infer("sum", [vectors(rows, binary)], request_compression_algorithm=compression)
        assert answer.as_numpy("output").tolist() == [6.0, 15.5], answer.get_response()
wanted = triton.InferRequestedOutput("output", binary_data=False)
answer = client.infer("sum", [vectors(rows)], model_version="1", request_id="abc", outputs=[wanted], timeout=400000)
assert answer.get_response()["id"] == "abc" and answer.as_numpy("output").tolist() == [6.0, 15.5]
assert len(answer.get_response()["parameters"]["query_ids"].split(",")) == 2

image = triton.InferInput("image", [2, 1, 2], "UINT8")
image.set_data_from_numpy(np.array([[[1, 2]], [[3, 4]]], np.uint8))
text = triton.InferInput("text", [2, 1], "BYTES")
text.set_data_from_numpy(np.array([["a b"], ["é d"]], object))
answer = client.infer("caption", [text, image])
assert answer.as_numpy("score").dtype == np.float32 and answer.as_numpy("score").tolist() == [3.0, 7.0]
assert answer.as_numpy("words").tolist() == [[b"a", b"b"], ["é".encode(), b"d"]]

refused('input "text" is missing: it is BYTES[-1]', client.infer, "caption", [image])
floats = triton.InferInput("input", [1], "FP32")
floats.set_data_from_numpy(np.zeros(1, np.float32))
refused('input "input" is FP32[1], and FP64[-1,-1] is wanted', client.infer, "sum", [floats])
refused("no app of this name", client.infer, "gone", [vectors(rows)])
refused("does not exist", client.infer, "sum", [vectors(rows)], model_version="7")
refused('output "x" is unknown', client.infer, "sum", [vectors(rows)], outputs=[triton.InferRequestedOutput("x")])


async def ask():
    async with triton_aio.InferenceServerClient(address) as client:
        answers = await asyncio.gather(*(client.infer("sum", [vectors(rows + i)]) for i in range(20)))
        for i, answer in enumerate(answers):
            assert answer.as_numpy("output").tolist() == [6.0 + 3 * i, 15.5 + 3 * i]


asyncio.run(ask())
print("all as expected")
