"""A server of KServe with one model: python kserve_server.py PORT."""

import sys

from kserve import InferOutput, InferResponse, Model, ModelServer


class Total(Model):
    def __init__(self):
        super().__init__("total")
        self.ready = True

    async def get_input_types(self):
        return [{"name": "x", "datatype": "FP32", "shape": [-1, -1]}]

    async def get_output_types(self):
        return [{"name": "total", "datatype": "FP32", "shape": [-1, 1]}]

    def predict(self, request, headers=None, response_headers=None):
        x = request.inputs[0].as_numpy()
        if x.shape[-1] == 13:
            raise ValueError("thirteen")
        total = InferOutput("total", [len(x), 1], "FP32")
        total.set_data_from_numpy(x.sum(axis=1, keepdims=True), binary_data=False)
        return InferResponse(request.id or "1", "total", [total])


ModelServer(http_port=int(sys.argv[1]), enable_grpc=False).start([Total()])
