"""An ONNX model, run by onnxruntime."""

from __future__ import annotations

from typing import Any

from ..container.signature import Signature, Tensor
from . import scores
from .failure import PermanentFailure, need
from .folder import Folder
from .matrix import stack
from .named import Arrays, check_inputs, dtypes, outputs_of, rows
from .onnx_classifier import Classifier

_CUDA, _CPU = "CUDAExecutionProvider", "CPUExecutionProvider"  # of onnxruntime
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(int16)": "int16",
    "tensor(uint16)": "uint16",
    "tensor(int32)": "int32",
    "tensor(uint32)": "uint32",
    "tensor(int64)": "int64",
    "tensor(uint64)": "uint64",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}


def load(folder: Folder) -> Session | NamedSession:
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
        if isinstance(e, PermanentFailure):
            raise
        raise PermanentFailure(f"{library} cannot load {folder.manifest.entry}: {e}") from e
    # What is installed may name CUDA and fail to load it; then onnxruntime goes on with the CPU and says nothing.
    problem = "cannot use CUDA, for the reason in the log: use a node with a GPU, and onnxruntime-gpu[cuda,cudnn]"
    folder.device(_CUDA in session.get_providers(), library, problem)
    output, wanted = folder.option("output", ""), scores.wanted(folder)
    if folder.named:
        return NamedSession(session, folder.named, output, wanted)
    return Session(session, output, wanted)


def signature_of(session: Any) -> Signature:
    """What the model says of one query. Outputs of which it does not say enough stay open. It raises
    PermanentFailure."""
    inputs = session.get_inputs()
    for i in inputs:
        _is_single(i)
    outputs = tuple(map(_tensor, session.get_outputs()))
    return Signature(tuple(map(_known, inputs)), () if None in outputs else outputs)  # type: ignore[arg-type]


def _known(node: Any) -> Tensor:
    tensor = _tensor(node)
    if tensor is None or tensor.type == "json":
        raise PermanentFailure(f"the model's input {node.name!r} is a {node.type}, and a query has numbers or text")
    return tensor


def _tensor(node: Any) -> Tensor | None:
    """An input or output without the dimension of the batch; None where it cannot be said."""
    if node.type.startswith("seq(map("):  # the probabilities of a classifier, by its labels
        return Tensor(node.name, "json")
    if node.type not in _DTYPES or not node.shape:
        return None
    dtype = _DTYPES[node.type]
    shape = tuple(n if isinstance(n, int) else -1 for n in node.shape[1:])
    return Tensor(node.name, "string" if dtype == "object" else dtype, shape)


def _is_single(node: Any) -> bool:
    """Whether it takes one query alone. It raises PermanentFailure where it takes neither one nor any number."""
    first = node.shape[0] if node.shape else 0
    if isinstance(first, int) and first != 1:
        raise PermanentFailure(
            f"the model's input {node.name!r} has the shape {list(node.shape or [])}, and batches differ in size: "
            "export the model with a first dimension that has a name"
        )
    return first == 1


class NamedSession:
    """A model whose inputs and outputs are those of a signature."""

    batched = True

    def __init__(self, session: Any, signature: Signature, output: str, wanted: bool | None = False) -> None:
        """It raises PermanentFailure."""
        own = signature_of(session)
        check_inputs(signature, [t.name for t in own.inputs])
        self._session, self._dtypes = session, dtypes(own)
        self._outputs = outputs_of(signature, output, [o.name for o in session.get_outputs()])
        self._single = any(map(_is_single, session.get_inputs()))
        found = Classifier.of(session.get_outputs(), wanted)
        self._classifier = found if found and found.label in self._outputs else None
        more = [found.probabilities] if self._classifier and found else []
        self._run_for = list(dict.fromkeys(self._outputs + more))

    def predict(self, inputs: Arrays) -> Arrays | list[Any]:
        found = rows(self._run, inputs, self._single)
        if not self._classifier:
            return found
        label, probabilities = found[self._classifier.label], found[self._classifier.probabilities]
        values = [{name: found[name][i] for name in self._outputs} for i in range(len(label))]
        return self._classifier.beside(values, label, probabilities)

    def _run(self, inputs: Arrays) -> Arrays:
        given = {name: x.astype(self._dtypes[name], copy=False) for name, x in inputs.items()}
        return dict(zip(self._run_for, self._session.run(self._run_for, given), strict=True))


class Session:
    def __init__(self, session: Any, output: str, wanted: bool | None = False) -> None:
        inputs, names = session.get_inputs(), [o.name for o in session.get_outputs()]
        if len(inputs) != 1:
            raise PermanentFailure(
                f"the model has {len(inputs)} inputs ({', '.join(i.name for i in inputs)}): give a dict with them as "
                "the example, or no example"
            )
        if inputs[0].type not in _DTYPES:
            raise PermanentFailure(f"the model's input is a {inputs[0].type}, and a query has numbers or text")
        if output and output not in names:
            raise PermanentFailure(f"the model has no output {output!r}: it has {', '.join(names)}")
        self._session, self._input = session, inputs[0].name
        self._dtype = _DTYPES[inputs[0].type]
        self._output = output or names[0]
        found = Classifier.of(session.get_outputs(), wanted)
        self._classifier = found if found and found.label == self._output else None
        self._single = bool(inputs[0].shape) and inputs[0].shape[0] == 1
        self._shape = tuple(n if isinstance(n, int) else -1 for n in inputs[0].shape[1:])

    def predict(self, inputs: list[Any]) -> list[Any]:
        if self._single:  # the model was made for one input at a time
            return [self._run([x])[0] for x in inputs]
        return self._run(inputs)

    def _run(self, inputs: list[Any]) -> list[Any]:
        batch = stack(inputs)
        if self._shape.count(-1) <= 1 and len(self._shape) != batch.ndim - 1:
            batch = batch.reshape(len(inputs), *self._shape)
        given = {self._input: batch.astype(self._dtype)}
        if not self._classifier:
            return list(self._session.run([self._output], given)[0])
        label, probabilities = self._session.run([self._output, self._classifier.probabilities], given)
        return self._classifier.beside(list(label), label, probabilities)
