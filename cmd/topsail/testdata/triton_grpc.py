"""Asks a gateway as users of Triton's client for gRPC do: python triton_grpc.py HOST:PORT."""

import asyncio
import queue
import sys

import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from tritonclient.utils import InferenceServerException

address = sys.argv[1]
client = triton.InferenceServerClient(address)


def vectors(rows):
    x = triton.InferInput("input", list(rows.shape), "FP64")
    x.set_data_from_numpy(rows)
    return x


def refused(status, words, call, *args, **options):
    try:
        call(*args, **options)
    except InferenceServerException as e:
        assert words in e.message() and e.status() == f"StatusCode.{status}", e
    else:
        raise AssertionError(f"not refused: {words}")


assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready("sum") and client.is_model_ready("sum", "1")
assert not client.is_model_ready("sum", "7")
assert "statistics" in client.get_server_metadata().extensions
assert {m.name for m in client.get_model_repository_index().models} == {"caption", "sum", "words"}
config = client.get_model_config("sum").config
assert config.input[0].name == "input" and list(config.input[0].dims) == [-1], config
assert list(client.get_model_metadata("sum").versions) == ["1"]
shown = client.get_model_metadata("caption")
assert shown.inputs[0].datatype == "UINT8" and list(shown.inputs[0].shape) == [-1, -1, 2], shown
client.load_model("sum")
refused("FAILED_PRECONDITION", "keeps replicas", client.unload_model, "sum")

rows = np.array([[1, 2, 3], [4, 5, 6.5]])
for compression in (None, "gzip", "deflate"):
    answer = client.infer("sum", [vectors(rows)], compression_algorithm=compression)
    assert answer.as_numpy("output").tolist() == [6.0, 15.5], answer.get_response()
wanted = triton.InferRequestedOutput("output")
answer = client.infer(
    "sum", [vectors(rows)], model_version="1", request_id="abc", outputs=[wanted], timeout=400000, client_timeout=10
)
assert answer.get_response().id == "abc" and answer.as_numpy("output").tolist() == [6.0, 15.5]
assert len(answer.get_response().parameters["query_ids"].string_param.split(",")) == 2

image = triton.InferInput("image", [2, 1, 2], "UINT8")
image.set_data_from_numpy(np.array([[[1, 2]], [[3, 4]]], np.uint8))
text = triton.InferInput("text", [2, 1], "BYTES")
text.set_data_from_numpy(np.array([["a b"], ["é d"]], object))
answer = client.infer("caption", [text, image])
assert answer.as_numpy("score").dtype == np.float32 and answer.as_numpy("score").tolist() == [3.0, 7.0]
assert answer.as_numpy("words").tolist() == [[b"a", b"b"], ["é".encode(), b"d"]]

refused("INVALID_ARGUMENT", 'input "text" is missing: it is BYTES[-1]', client.infer, "caption", [image])
refused("NOT_FOUND", "no app of this name", client.infer, "gone", [vectors(rows)])
refused("UNIMPLEMENTED", "", client.get_system_shared_memory_status)
stats = client.get_inference_statistics("sum").model_stats[0]
assert stats.inference_count >= 8 and stats.inference_stats.success.ns > 0, stats

answers = queue.Queue()
client.start_stream(callback=lambda result, error: answers.put((result, error)))
for i in range(20):
    client.async_stream_infer("sum", [vectors(rows + i)], request_id=str(i), enable_empty_final_response=True)
client.async_stream_infer("gone", [vectors(rows)], request_id="gone")
sentence = triton.InferInput("input", [1], "BYTES")
sentence.set_data_from_numpy(np.array([b"one two 3"], dtype=object))
client.async_stream_infer("words", [sentence], request_id="words", enable_empty_final_response=True)
seen, ended, parts = {}, set(), []
for _ in range(20 * 2 + 1 + 4):
    result, error = answers.get(timeout=30)
    if error is not None:
        assert "no app of this name" in error.message(), error
        continue
    response = result.get_response()
    if response.parameters["triton_final_response"].bool_param:
        assert not response.outputs, response  # it is empty
        ended.add(response.id)
    elif response.id == "words":
        parts.append(result.as_numpy("output").tolist()[0])
    else:
        seen[int(response.id)] = result.as_numpy("output").tolist()
client.stop_stream()
assert seen == {i: [6.0 + 3 * i, 15.5 + 3 * i] for i in range(20)}, seen
assert ended == {*map(str, range(20)), "words"} and parts == [b"one ", b"two ", b"3 "], (ended, parts)


async def ask():
    async with triton_aio.InferenceServerClient(address) as client:
        answers = await asyncio.gather(*(client.infer("sum", [vectors(rows + i)]) for i in range(20)))
        for i, answer in enumerate(answers):
            assert answer.as_numpy("output").tolist() == [6.0 + 3 * i, 15.5 + 3 * i]


asyncio.run(ask())
print("all as expected")
