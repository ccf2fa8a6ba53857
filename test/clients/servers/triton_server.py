"""Triton with one model in its Python backend: python triton_server.py HTTP_PORT GRPC_PORT FOLDER, with PyTriton's package."""

import importlib.util
import os
import pathlib
import sys
import sysconfig

http, grpc, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
package = pathlib.Path(importlib.util.find_spec("pytriton").origin).parent
python = f"{sys.version_info[0]}.{sys.version_info[1]}"

CONFIG = """name: "total"
backend: "python"
max_batch_size: 128
input { name: "x" data_type: TYPE_FP32 dims: [-1] }
output { name: "total" data_type: TYPE_FP32 dims: [1] }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching {}
"""
MODEL = """import triton_python_backend_utils as utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(utils.get_input_tensor_by_name(r, "x").as_numpy()) for r in requests]

    def answer(self, x):
        if x.shape[-1] == 13:
            return utils.InferenceResponse(error=utils.TritonError("thirteen"))
        return utils.InferenceResponse(output_tensors=[utils.Tensor("total", x.sum(axis=1, keepdims=True))])
"""

model, backend = folder / "models" / "total", folder / "backends" / "python"
(model / "1").mkdir(parents=True)
(model / "config.pbtxt").write_text(CONFIG)
(model / "1" / "model.py").write_text(MODEL)
backend.mkdir(parents=True)
for file in (
    "backends/python/libtriton_python.so",
    "backends/python/triton_python_backend_utils.py",
    f"python_backend_stubs/{python}/triton_python_backend_stub",
):
    (backend / pathlib.Path(file).name).symlink_to(package / "tritonserver" / file)

server = str(package / "tritonserver" / "bin" / "tritonserver")
libraries = f"{package.parent / 'nvidia_pytriton.libs'}:{sysconfig.get_config_var('LIBDIR')}"
path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # models see the packages of the first python3 in it
os.execve(
    server,
    [
        server,
        f"--model-repository={folder / 'models'}",
        f"--backend-directory={folder / 'backends'}",
        f"--backend-config=python,shm-region-prefix-name=topsail-{http}-",
        "--http-address=127.0.0.1",
        f"--http-port={http}",
        "--grpc-address=127.0.0.1",
        f"--grpc-port={grpc}",
        "--allow-metrics=false",
    ],
    {**os.environ, "PATH": path, "LD_LIBRARY_PATH": libraries},
)
