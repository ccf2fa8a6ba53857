"""Asks a gateway with MLServer's codecs over plain HTTP: python mlserver_client.py HTTP GRPC, two addresses."""

import sys
import urllib.error
import urllib.request

import iris
import numpy as np
import pandas as pd
import talk
from mlserver.codecs import NumpyCodec, NumpyRequestCodec, PandasCodec, StringCodec, StringRequestCodec
from mlserver.types import InferenceRequest, InferenceResponse

base = f"http://{sys.argv[1]}/v2/models"


def ask(model, request):
    asked = urllib.request.Request(f"{base}/{model}/infer", request.model_dump_json().encode())
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return InferenceResponse.model_validate_json(answer.read())
    except urllib.error.HTTPError as e:
        raise AssertionError(e.read()) from e


rows = np.array([[1, 2, 3], [4, 5, 6.5]])
answer = ask("sum", InferenceRequest(inputs=[NumpyCodec.encode_input("input", rows)]))
assert NumpyCodec.decode_output(answer.outputs[0]).reshape(-1).tolist() == [6.0, 15.5], answer
answer = ask("sum", NumpyRequestCodec.encode_request(rows))
assert NumpyRequestCodec.decode_response(answer).reshape(-1).tolist() == [6.0, 15.5], answer

answer = ask("upper", InferenceRequest(inputs=[StringCodec.encode_input("input", ["a", "bé"])]))
assert StringCodec.decode_output(answer.outputs[0]) == ["A", "BÉ"], answer
answer = ask("upper", StringRequestCodec.encode_request(["a", "bé"]))
assert StringRequestCodec.decode_response(answer) == ["A", "BÉ"], answer

frame = pd.DataFrame({"area": [10.5, 2.0], "rate": [2, 3], "town": ["ulm", "bonn"]})
answer = ask("price", PandasCodec.encode_request(frame))
decoded = PandasCodec.decode_response(answer)
assert decoded["price"].tolist() == [21.0, 6.0] and decoded["class"].tolist() == ["u", "b"], decoded

for model, dtype in iris.MODELS.items():
    answer = ask(model, InferenceRequest(inputs=[NumpyCodec.encode_input("x", iris.ROWS.astype(dtype))]))
    labels, probabilities = (NumpyCodec.decode_output(o) for o in answer.outputs)
    iris.check(model, labels.reshape(-1), probabilities)

answer = ask("iris-table", PandasCodec.encode_request(pd.DataFrame(iris.ROWS, columns=iris.COLUMNS)))
labels, probabilities = (NumpyCodec.decode_output(o) for o in answer.outputs)
iris.check("iris", labels.reshape(-1), probabilities)

answer = ask("chat", InferenceRequest(inputs=[StringCodec.encode_input("input", talk.ROWS)]))
talk.check(StringCodec.decode_output(answer.outputs[0]))
talk.check(StringRequestCodec.decode_response(ask("chat", StringRequestCodec.encode_request(talk.ROWS))))
print("MLServer's codecs: all as expected")
