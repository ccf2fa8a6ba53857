"""A model of MLServer."""

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Total(MLModel):
    async def load(self):
        return True

    async def predict(self, request):
        x = NumpyCodec.decode_input(request.inputs[0])
        if x.shape[-1] == 13:
            raise ValueError("thirteen")
        return InferenceResponse(
            model_name=self.name, outputs=[NumpyCodec.encode_output("total", x.sum(axis=-1, keepdims=True))]
        )
