"""The model of the case "tensors" in KServe, asked with raw bodies: python tensors_kserve.py --http_port PORT"""

import json
import logging

import kserve
import numpy as np
from tensors import look


class Look(kserve.Model):
    def __init__(self, name):
        super().__init__(name)
        self.ready = True

    async def predict(self, payload, headers=None, response_headers=None):
        image = np.frombuffer(payload, np.float32).reshape(3, 224, 224)
        return json.dumps(look(image).tolist(), separators=(",", ":")).encode()


if __name__ == "__main__":
    logging.disable(logging.ERROR)  # it would write a line for each answer, and many for each that fails
    kserve.ModelServer(workers=1, enable_grpc=False, enable_latency_logging=False).start([Look("bench")])
