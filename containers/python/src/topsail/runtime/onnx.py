"""An ONNX model, run by onnxruntime."""

from __future__ import annotations

from typing import Any

from .folder import Folder
from .matrix import stack
from .refusal import Refused, need

_CUDA, _CPU = "CUDAExecutionProvider", "CPUExecutionProvider"  # of onnxruntime
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(int16)": "int16",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}


def load(folder: Folder) -> Session:
    """Option `output` names one of several outputs, the first without; `threads` is for one batch, 1 without; `device`
    is cpu, cuda, or auto for cuda where there is one."""
    runtime = need("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = folder.threads()
    library = f"onnxruntime {runtime.__version__}"
    built = _CUDA in runtime.get_available_providers()
    device = folder.device(built, library, "is a build for the CPU: require onnxruntime-gpu[cuda,cudnn]")
    providers = [_CPU]
    if device == "cuda":
        providers = [_CUDA, _CPU]
        if preload := getattr(runtime, "preload_dlls", None):  # before 1.21 it finds those of the system alone
            preload()  # the libraries of CUDA that pip has installed
    try:
        session = runtime.InferenceSession(str(folder.entry(".onnx")), options, providers=providers)
    except Exception as e:  # onnxruntime has an exception of its own for each of its errors
        if isinstance(e, Refused):
            raise
        raise Refused(f"{library} cannot load {folder.manifest.entry}: {e}") from e
    # What is installed may name CUDA and fail to load it; then onnxruntime goes on with the CPU and says nothing.
    problem = "cannot use CUDA, for the reason in the log: use a node with a GPU, and onnxruntime-gpu[cuda,cudnn]"
    folder.device(_CUDA in session.get_providers(), library, problem)
    return Session(session, folder.option("output", ""))


class Session:
    def __init__(self, session: Any, output: str) -> None:
        inputs, names = session.get_inputs(), [o.name for o in session.get_outputs()]
        if len(inputs) != 1:
            raise Refused(
                f"the model has {len(inputs)} inputs ({', '.join(i.name for i in inputs)}), and a query has one"
            )
        if inputs[0].type not in _DTYPES:
            raise Refused(f"the model's input is a {inputs[0].type}, and a query has numbers or text")
        if output and output not in names:
            raise Refused(f"the model has no output {output!r}: it has {', '.join(names)}")
        self._session, self._input = session, inputs[0].name
        self._dtype = _DTYPES[inputs[0].type]
        self._output = output or names[0]
        self._single = bool(inputs[0].shape) and inputs[0].shape[0] == 1
        self._shape = tuple(n if isinstance(n, int) else -1 for n in inputs[0].shape[1:])

    def predict(self, inputs: list[Any]) -> list[Any]:
        if self._single:  # the model was made for one input at a time
            return [self._run([x])[0] for x in inputs]
        return list(self._run(inputs))

    def _run(self, inputs: list[Any]) -> Any:
        batch = stack(inputs)
        if self._shape.count(-1) <= 1 and len(self._shape) != batch.ndim - 1:
            batch = batch.reshape(len(inputs), *self._shape)
        return self._session.run([self._output], {self._input: batch.astype(self._dtype)})[0]
