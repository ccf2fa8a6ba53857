"""Asks trained models as users of Triton's clients do: python triton_client.py HTTP GRPC, two addresses."""

import asyncio
import json
import queue
import struct
import sys
import urllib.request

import iris
import numpy as np
import talk
import tritonclient.grpc as grpc
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as http
import tritonclient.http.aio as http_aio
from grpc import insecure_channel as open_channel

http_address, grpc_address = sys.argv[1:]


def flowers(kind, model, **options):
    x = kind.InferInput("x", [3, 4], {"iris": "FP64", "iris-onnx": "FP32"}[model])
    x.set_data_from_numpy(iris.ROWS.astype(iris.MODELS[model]), **options)
    return [x]


def check(model, answer):
    iris.check(model, answer.as_numpy("label"), answer.as_numpy("probabilities"))


def chats(kind, **options):
    x = kind.InferInput("input", [2], "BYTES")
    x.set_data_from_numpy(np.array([row.encode() for row in talk.ROWS], object), **options)
    return [x]


def check_chats(answer):
    talk.check([text.decode() for text in answer.as_numpy("output")])


async def all_at_once(kind, aio, address, model):
    async with aio.InferenceServerClient(address) as client:
        for answer in await asyncio.gather(*(client.infer(model, flowers(kind, model)) for _ in range(8))):
            check(model, answer)
        check_chats(await client.infer("chat", chats(kind)))


def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def judge(query_id, label):
    """What the gateway makes of feedback on an answer."""
    body = json.dumps({"query_id": query_id, "label": label}).encode()
    request = urllib.request.Request(f"http://{http_address}/judged/update", body, {"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def in_parts(client):
    """What a chat and a completion write, by the app."""
    got = queue.Queue()
    client.start_stream(callback=lambda result, error: got.put((result, error)))
    for app, text in [
        ("chat", json.dumps({"messages": [{"role": "user", "content": "The list type"}], "max_tokens": 5})),
        ("completion", "The list type"),
    ]:
        x = grpc.InferInput("input", [1], "BYTES")
        x.set_data_from_numpy(np.array([text.encode()], object))
        client.async_stream_infer(app, [x], request_id=app, enable_empty_final_response=True)
    for model in iris.MODELS:
        client.async_stream_infer(model, flowers(grpc, model), request_id=model)
    parts, waiting = {"chat": [], "completion": []}, {"chat", "completion", *iris.MODELS}
    while waiting:
        result, error = got.get(timeout=30)
        assert error is None, error
        response = result.get_response()
        if response.id in iris.MODELS:
            check(response.id, result)
            waiting.discard(response.id)
        elif response.parameters["triton_final_response"].bool_param:
            waiting.discard(response.id)
        else:
            parts[response.id].append(result.as_numpy("output").tolist()[0].decode())
    client.stop_stream()
    return parts


over_http, over_grpc = http.InferenceServerClient(http_address), grpc.InferenceServerClient(grpc_address)
for model in iris.MODELS:
    assert over_http.is_model_ready(model) and over_grpc.is_model_ready(model)
    assert over_http.get_model_metadata(model)["outputs"][1]["shape"] == [-1, 3]
    for binary in (True, False):
        check(model, over_http.infer(model, flowers(http, model, binary_data=binary)))
    check(model, over_grpc.infer(model, flowers(grpc, model)))
    asyncio.run(all_at_once(http, http_aio, http_address, model))
    asyncio.run(all_at_once(grpc, grpc_aio, grpc_address, model))
for binary in (True, False):
    check_chats(over_http.infer("chat", chats(http, binary_data=binary)))
check_chats(over_grpc.infer("chat", chats(grpc)))

# Feedback is joined with the answer whose id a client of Triton got.
ids = over_http.infer("judged", flowers(http, "iris")).get_response()["parameters"]["query_ids"].split(",")
ids += over_grpc.infer("judged", flowers(grpc, "iris")).get_response().parameters["query_ids"].string_param.split(",")
for query, right in zip(map(int, ids), [0, 1, 2] * 2, strict=True):
    for label, loss in [(right, 0), (7, 1)]:  # the second is too late
        said = judge(query, label)
        assert (said["query_id"], said["joined"], said["loss"]) == (query, "record", loss), said
        assert said["duplicate"] == (loss == 1) and said["models"] == [{"model": "iris:1", "loss": loss}], said

# So it is over gRPC: app, query_id and reward of topsail.v1's FeedbackRequest, and query_id and joined of its answer.
answer = over_grpc.infer("judged", flowers(grpc, "iris"), parameters={"uid": "ann"})
query = varint(int(answer.get_response().parameters["query_ids"].string_param.split(",")[0]))
with open_channel(grpc_address) as channel:
    rate = channel.unary_unary("/topsail.v1.Topsail/Feedback")
    request = b"\x0a\x06judged\x18" + query + b"\x2a\x03ann" + b"\x41" + struct.pack("<d", 1)
    said = rate(request, timeout=10)
    assert said.startswith(b"\x08" + query + b"\x12\x06record"), said
    assert b"\x18\x01" in rate(request, timeout=10), "a second reward is no duplicate"
written = in_parts(over_grpc)
assert [len(parts) for parts in written.values()] == [5, 8], written
over_http.close()
over_grpc.close()  # while threads still run: left to the end of the interpreter, it may wait for ever
print("Triton's clients: all as expected")
