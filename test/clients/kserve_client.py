"""Asks a gateway as users of KServe's clients do: python kserve_client.py HTTP GRPC, two addresses."""

import asyncio
import sys

import grpc
import iris
import numpy as np
import talk
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig

http_address, grpc_address = sys.argv[1:]
rows = np.array([[1, 2, 3], [4, 5, 6.5]])


def request(binary, model="sum"):
    x = InferInput("input", [2, 3], "FP64")
    x.set_data_from_numpy(rows, binary_data=binary)
    return InferRequest(model_name=model, infer_inputs=[x], request_id="r1")


def expect(answer):
    assert answer.id == "r1" and answer.model_name == "sum", answer
    assert answer.outputs[0].as_numpy().tolist() == [6.0, 15.5], answer


def flowers(model, binary):
    x = InferInput("x", [3, 4], {"iris": "FP64", "iris-onnx": "FP32"}[model])
    x.set_data_from_numpy(iris.ROWS.astype(iris.MODELS[model]), binary_data=binary)
    return InferRequest(model_name=model, infer_inputs=[x])


def check(model, answer):
    iris.check(model, *(answer.get_output_by_name(name).as_numpy() for name in ("label", "probabilities")))


def chats(binary):
    x, rows = InferInput("input", [2], "BYTES"), [row.encode() for row in talk.ROWS] if binary else talk.ROWS
    x.set_data_from_numpy(np.array(rows, object), binary_data=binary)
    return InferRequest(model_name="chat", infer_inputs=[x])


def check_chats(answer):
    texts = answer.outputs[0].as_numpy().tolist()
    talk.check([text.decode() if isinstance(text, bytes) else text for text in texts])


async def rest():
    client, base = InferenceRESTClient(RESTConfig(protocol="v2")), f"http://{http_address}"
    assert await client.is_server_live(base) and await client.is_server_ready(base)
    assert await client.is_model_ready(base, "sum")
    for binary in (True, False):
        expect(await client.infer(base, request(binary), model_name="sum"))
        check_chats(await client.infer(base, chats(binary), model_name="chat"))
        for model in iris.MODELS:
            check(model, await client.infer(base, flowers(model, binary), model_name=model))
    try:
        await client.infer(base, request(True, "gone"), model_name="gone")
    except Exception as e:
        assert "404" in str(e), e
    else:
        raise AssertionError("an unknown model answers")


async def over_grpc():
    client = InferenceGRPCClient(grpc_address)
    assert await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("sum")
    for binary in (True, False):
        expect(await client.infer(request(binary), timeout=5))
        check_chats(await client.infer(chats(binary), timeout=5))
        for model in iris.MODELS:
            check(model, await client.infer(flowers(model, binary), timeout=5))
    try:
        await client.infer(request(True, "gone"), timeout=5)
    except grpc.RpcError as e:
        assert e.code() == grpc.StatusCode.NOT_FOUND, e
    else:
        raise AssertionError("an unknown model answers")


asyncio.run(rest())
asyncio.run(over_grpc())
print("KServe's clients: all as expected")
