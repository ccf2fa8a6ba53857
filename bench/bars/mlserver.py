"""The no-op model in MLServer."""

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Noop(MLModel):
    async def predict(self, payload):
        x = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        output = NumpyCodec.encode_output("output", np.full((len(x), 1), 0.5))
        return InferenceResponse(model_name=self.name, outputs=[output])
