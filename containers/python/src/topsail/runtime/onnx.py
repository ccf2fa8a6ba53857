"""An ONNX model, run by onnxruntime."""

from __future__ import annotations

from typing import Any

from ..container.signature import Signature, Tensor
from . import scores
from .failure import PermanentFailure, need
from .folder import Folder
from .matrix import cast, fixed_size, in_batches_of, stack
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
    is cpu, cuda, or auto for cuda where there is one; `shape` is that of one input, as 3,224,224, where the model
    leaves it open."""
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
    return Session(session, output, wanted, folder.shape())


def signature_of(session: Any) -> Signature:
    """What the model says of one query. Outputs of which it does not say enough stay open. It raises
    PermanentFailure."""
    _size(session)
    outputs = tuple(map(_tensor, session.get_outputs()))
    return Signature(tuple(map(_known, session.get_inputs())), () if None in outputs else outputs)  # type: ignore[arg-type]


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


def _size(session: Any) -> int:
    """How many queries it takes at once, 0 for any number. It raises PermanentFailure where it takes no rows."""
    return fixed_size((i.name, first_dimension(i.shape)) for i in session.get_inputs())


def first_dimension(shape: Any) -> int | None:
    """Of what is open, the model says a name or nothing."""
    first = shape[0] if shape else None
    return first if isinstance(first, int) else None


class NamedSession:
    """A model whose inputs and outputs are those of a signature."""

    batched = True

    def __init__(self, session: Any, signature: Signature, output: str, wanted: bool | None = False) -> None:
        """It raises PermanentFailure."""
        own = signature_of(session)
        check_inputs(signature, [t.name for t in own.inputs])
        self._session, self._dtypes = session, dtypes(own)
        self._outputs = outputs_of(signature, output, [o.name for o in session.get_outputs()])
        self._size = _size(session)
        found = Classifier.of(session.get_outputs(), wanted)
        self._classifier = found if found and found.label in self._outputs else None
        more = [found.probabilities] if self._classifier and found else []
        self._run_for = list(dict.fromkeys(self._outputs + more))

    def predict(self, inputs: Arrays) -> Arrays | list[Any]:
        found = rows(self._run, inputs, self._size)
        if not self._classifier:
            return found
        label, probabilities = found[self._classifier.label], found[self._classifier.probabilities]
        values = [{name: found[name][i] for name in self._outputs} for i in range(len(label))]
        return self._classifier.beside(values, label, probabilities)

    def _run(self, inputs: Arrays) -> Arrays:
        given = {name: cast(x, self._dtypes[name]) for name, x in inputs.items()}
        return dict(zip(self._run_for, self._session.run(self._run_for, given), strict=True))


class Session:
    def __init__(self, session: Any, output: str, wanted: bool | None = False, shape: tuple[int, ...] = ()) -> None:
        """`shape` is that of one input, where the model leaves more than one of its dimensions open."""
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
        self._size = _size(session)
        self._shape = tuple(n if isinstance(n, int) else -1 for n in inputs[0].shape[1:])
        if self._shape.count(-1) > 1 and len(shape) == len(self._shape):
            self._shape = shape

    def predict(self, inputs: list[Any]) -> list[Any]:
        return in_batches_of(self._size, self._run, inputs)

    def _run(self, inputs: list[Any]) -> list[Any]:
        batch = stack(inputs)
        if self._shape.count(-1) <= 1 and len(self._shape) != batch.ndim - 1:
            batch = batch.reshape(len(inputs), *self._shape)
        given = {self._input: cast(batch, self._dtype)}
        if not self._classifier:
            return list(self._session.run([self._output], given)[0])
        label, probabilities = self._session.run([self._output, self._classifier.probabilities], given)
        return self._classifier.beside(list(label), label, probabilities)
