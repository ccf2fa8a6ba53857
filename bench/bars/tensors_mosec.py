"""The model of the case "tensors" in mosec, asked with raw bodies: python tensors_mosec.py --address 127.0.0.1 --port PORT"""

import json

import mosec
import numpy as np
from tensors import look


class Look(mosec.Worker):
    def deserialize(self, data):
        return np.frombuffer(data, np.float32).reshape(3, 224, 224)

    def forward(self, data):
        return look(data)

    def serialize(self, data):
        return json.dumps(data.tolist(), separators=(",", ":")).encode()


if __name__ == "__main__":
    server = mosec.Server()
    server.append_worker(Look, num=1)
    server.run()
