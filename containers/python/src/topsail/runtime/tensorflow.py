"""A SavedModel or a frozen graph of TensorFlow."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from ..container import signature
from ..container.signature import NUMBERS, Tensor
from . import frozen_graph
from .failure import PermanentFailure, need
from .folder import Folder
from .frozen_graph import FrozenGraph
from .matrix import cast, fixed_size, in_batches_of, stack
from .named import Arrays, check_inputs, outputs_of, rows
from .output_scores import OutputScores


def load(folder: Folder) -> Signature | NamedSignature:
    """The entry is the folder of the SavedModel. Option `signature` names what is called, serving_default without, and
    `output` one of several outputs; `device` is cpu, cuda, or auto for cuda where there is one; `threads` is for one
    batch, 1 without; `shape` is that of one input, as 3,224,224, where the signature leaves it open. `scores` is
    softmax or probabilities where the output says that of classes, whose names are `classes`. A frozen graph is a file,
    and options may name its `inputs` and `outputs`."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors; else each start says how it was compiled
    tf = need("tensorflow")
    place = _place(tf, folder)
    with suppress(RuntimeError):  # it is running already, for another model of the same process
        tf.config.threading.set_intra_op_parallelism_threads(folder.threads())
        tf.config.threading.set_inter_op_parallelism_threads(1)
    path, graph = folder.entry(), frozen_graph.named(folder)
    try:
        with tf.device(place):
            model = FrozenGraph(tf, path, *graph) if graph else tf.saved_model.load(str(path))
    except (OSError, ValueError, tf.errors.OpError) as e:
        kind = "frozen graph" if graph else "SavedModel"
        raise PermanentFailure(f"TensorFlow {tf.__version__} cannot load {path.name} as a {kind}: {e}") from e
    return NamedSignature(tf, model, folder, place) if folder.named else Signature(tf, model, folder, place)


def signature_of(model: Any, name: str) -> signature.Signature:
    """What a signature of the model says of one query. Outputs of which it does not say enough stay open. It raises
    PermanentFailure."""
    function = _named(model.signatures, name, "signature")
    inputs = function.structured_input_signature[1]
    _size(inputs)
    outputs = tuple(_tensor(name, spec) for name, spec in function.structured_outputs.items())
    return signature.Signature(
        tuple(_known(name, spec) for name, spec in inputs.items()),
        () if None in outputs else outputs,  # type: ignore[arg-type]
    )


def _known(name: str, spec: Any) -> Tensor:
    tensor = _tensor(name, spec)
    if tensor is None:
        raise PermanentFailure(
            f"the input {name!r} of the signature is a {spec.dtype.name} of shape {spec.shape}, which a query cannot "
            "have: export it with numbers or texts of a known number of dimensions"
        )
    return tensor


def _tensor(name: str, spec: Any) -> Tensor | None:
    """An input or output without the dimension of the batch; None where it cannot be said."""
    if not spec.shape.rank or spec.dtype.name not in NUMBERS | {"string"}:
        return None
    return Tensor(name, spec.dtype.name, tuple(-1 if n is None else n for n in list(spec.shape)[1:]))


class NamedSignature:
    """A function of the model whose inputs and outputs are those of the bundle's signature."""

    batched = True

    def __init__(self, tf: Any, model: Any, folder: Folder, place: str) -> None:
        """It raises PermanentFailure."""
        self._tf, self._place = tf, place
        self._model = model  # which holds the variables
        self._function = _named(model.signatures, folder.option("signature", "serving_default"), "signature")
        self._specs = self._function.structured_input_signature[1]
        said = folder.named or signature.Signature()
        check_inputs(said, self._specs)
        self._outputs = outputs_of(said, folder.option("output", ""), self._function.structured_outputs)
        self._scores = OutputScores.of(folder)
        self._size = _size(self._specs)

    def predict(self, inputs: Arrays) -> Arrays | list[Any]:
        outputs = rows(self._run, inputs, self._size)
        return self._scores.beside_named(outputs) if self._scores else outputs

    def _run(self, inputs: Arrays) -> Arrays:
        with self._tf.device(self._place):
            outputs = self._function(**{name: self._constant(name, x) for name, x in inputs.items()})
            return {name: _plain(self._tf, outputs[name]) for name in self._outputs}

    def _constant(self, name: str, x: Any) -> Any:
        dtype = self._specs[name].dtype
        return self._tf.constant(x if dtype == self._tf.string else cast(x, dtype.as_numpy_dtype))


class Signature:
    """A function of the model, which takes one tensor with a row for each input."""

    def __init__(self, tf: Any, model: Any, folder: Folder, place: str) -> None:
        self._tf, self._place = tf, place
        self._model = model  # which holds the variables
        self._function = _named(model.signatures, folder.option("signature", "serving_default"), "signature")
        self._input, spec = _only_input(self._function.structured_input_signature[1])
        outputs = self._function.structured_outputs
        self._output = _chosen(outputs, folder.option("output", ""))
        self._dtype = spec.dtype
        self._size = _size({self._input: spec})
        self._shape = folder.shape() or _shape(spec)
        self._scores = OutputScores.of(folder)

    def predict(self, inputs: list[Any]) -> list[Any]:
        outputs = in_batches_of(self._size, self._run, inputs) if self._size else self._run(inputs)
        return self._scores.beside(outputs) if self._scores else list(outputs)

    def _run(self, inputs: list[Any]) -> Any:
        with self._tf.device(self._place):
            output = self._function(**{self._input: self._batch(inputs)})[self._output]
            return _plain(self._tf, output)

    def _batch(self, inputs: list[Any]) -> Any:
        if self._dtype == self._tf.string:
            batch = self._tf.constant([_octets(x) for x in inputs])
            return batch if self._shape is None else self._tf.reshape(batch, (len(inputs), *self._shape))
        rows = stack(inputs)
        if self._shape is not None:
            rows = rows.reshape(len(inputs), *self._shape)
        return self._tf.constant(cast(rows, self._dtype.as_numpy_dtype))


def _place(tf: Any, folder: Folder) -> str:
    """Where the model is to run. TensorFlow would else take all memory of every GPU that it sees."""
    found = tf.config.list_physical_devices("GPU")
    problem = "" if tf.test.is_built_with_cuda() else "is a build for the CPU: require tensorflow[and-cuda]"
    if folder.device(bool(found), f"TensorFlow {tf.__version__}", problem) == "cuda":
        return "/GPU:0"
    with suppress(RuntimeError):
        tf.config.set_visible_devices([], "GPU")
    return "/CPU:0"


def _named(found: Any, name: str, what: str) -> Any:
    if name not in found:
        raise PermanentFailure(f"the model has no {what} {name!r}: it has {', '.join(sorted(found)) or 'none'}")
    return found[name]


def _only_input(specs: Any) -> tuple[str, Any]:
    if len(specs) != 1:
        raise PermanentFailure(
            f"the signature has {len(specs)} inputs ({', '.join(sorted(specs))}): give a dict with them as the "
            "example, or no example"
        )
    [(name, spec)] = specs.items()
    return name, spec


def _chosen(outputs: Any, name: str) -> str:
    if not name and len(outputs) == 1:
        return str(next(iter(outputs)))
    if not name:
        raise PermanentFailure(
            f"the signature has the outputs {', '.join(sorted(outputs))}: name one as the option output"
        )
    _named(outputs, name, "output")
    return name


def _size(specs: Any) -> int:
    """How many queries a signature takes at once, 0 for any number. It raises PermanentFailure where it takes no
    rows."""
    return fixed_size((name, _first(spec.shape)) for name, spec in specs.items())


def _first(shape: Any) -> int | None:
    if shape.rank is None:
        return None
    return shape[0] if shape.rank else 0


def _shape(spec: Any) -> tuple[int, ...] | None:
    """That of one input; None where more than one of its dimensions is open: then inputs have to come as they are."""
    dimensions = [None, None] if spec.shape.rank is None else list(spec.shape)[1:]
    return None if dimensions.count(None) > 1 else tuple(-1 if n is None else n for n in dimensions)


def _plain(tf: Any, output: Any) -> Any:
    """An array of a type that numpy has, or nested lists of texts."""
    if output.dtype.is_floating and output.dtype.size < 4:
        output = tf.cast(output, tf.float32)
    array = output.numpy()
    return _texts(array.tolist()) if array.dtype == object else array


def _octets(x: Any) -> Any:
    """A text, or bytes: what a tensor of strings has."""
    if isinstance(x, str):
        return x
    if x.dtype != "uint8":
        raise ValueError("the model takes texts or bytes, and no numbers")
    return x.tobytes()


def _texts(rows: Any) -> Any:
    return list(map(_texts, rows)) if isinstance(rows, list) else rows.decode("utf-8", "replace")
