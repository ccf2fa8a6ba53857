"""Models that were trained, which clients of other servers ask: with scikit-learn, ONNX Runtime and NumPy."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "chat"))


def trained():
    """A classifier of iris flowers."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000).fit(*load_iris(return_X_y=True))


class Iris:
    batched = True

    def setup(self):
        self.model = trained()

    def predict(self, inputs):
        found = self.model.predict_proba(inputs["x"])
        return {"label": found.argmax(axis=1), "probabilities": found}


class IrisTable(Iris):
    """The same classifier of a table, a column of which is an input."""

    def predict(self, inputs):
        import numpy as np
        from iris import COLUMNS

        return super().predict({"x": np.stack([inputs[name] for name in COLUMNS], axis=1)})


class IrisOnnx:
    """The same classifier as a graph of ONNX."""

    batched = True

    def setup(self):
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper

        model = trained()
        graph = helper.make_graph(
            [
                helper.make_node("Gemm", ["x", "weights", "bias"], ["scores"]),
                helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
                helper.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
            ],
            "iris",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
            [
                helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
                helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 3]),
            ],
            [
                numpy_helper.from_array(model.coef_.T.astype("float32"), "weights"),
                numpy_helper.from_array(model.intercept_.astype("float32"), "bias"),
            ],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        self.session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])

    def predict(self, inputs):
        return dict(zip(["label", "probabilities"], self.session.run(None, {"x": inputs["x"]}), strict=True))


class Vectors:
    """Embeds texts by the weights of their words."""

    def setup(self):
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.model = TfidfVectorizer().fit(["a list of numbers", "a dictionary of names", "numbers and names"])

    def predict(self, inputs):
        return list(self.model.transform(inputs).toarray())


class Writer:
    """Goes on with a text: the transformer of examples/chat, after a second of training."""

    def setup(self):
        from chat import train
        from transformer import Transformer

        self.model = Transformer()
        train(self.model, 1)

    def write(self, text, length):
        from itertools import islice

        import numpy as np

        for byte in islice(self.model.write(text.encode(), 0, np.random.default_rng(0)), length):
            yield chr(byte % 128)


class Completion(Writer):
    def predict(self, text):
        yield from self.write(text, 8)


class Chat(Writer):
    def predict(self, messages, max_tokens=8):
        yield from self.write(messages[-1]["content"], max_tokens)


if __name__ == "__main__":
    import topsail

    topsail.serve_chat(Chat)
