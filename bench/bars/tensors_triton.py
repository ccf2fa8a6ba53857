"""The model of the case "tensors" in Triton's Python backend."""

import triton_python_backend_utils as utils
from tensors import look


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            images = utils.get_input_tensor_by_name(request, "image").as_numpy()
            output = utils.Tensor("output", look(images[0])[None])
            answers.append(utils.InferenceResponse(output_tensors=[output]))
        return answers
