"""A SavedModel of TensorFlow."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from .folder import Folder
from .matrix import stack
from .refusal import Refused, need


def load(folder: Folder) -> Signature:
    """The entry is the folder of the SavedModel. Option `signature` names what is called, serving_default without, and
    `output` one of several outputs; `device` is cpu, cuda, or auto for cuda where there is one; `threads` is for one
    batch, 1 without; `shape` is that of one input, as 3,224,224, where the signature leaves it open."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors; else each start says how it was compiled
    tf = need("tensorflow")
    place = _place(tf, folder)
    with suppress(RuntimeError):  # it is running already, for another model of the same process
        tf.config.threading.set_intra_op_parallelism_threads(folder.threads())
        tf.config.threading.set_inter_op_parallelism_threads(1)
    path = folder.entry()
    try:
        with tf.device(place):
            model = tf.saved_model.load(str(path))
    except (OSError, ValueError, tf.errors.OpError) as e:
        raise Refused(f"TensorFlow {tf.__version__} cannot load {path.name} as a SavedModel: {e}") from e
    return Signature(tf, model, folder, place)


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
        self._single = _is_single(spec)
        self._shape = folder.shape() or _shape(spec)

    def predict(self, inputs: list[Any]) -> list[Any]:
        if self._single:  # the model was exported for one input at a time
            return [self._run([x])[0] for x in inputs]
        return self._run(inputs)

    def _run(self, inputs: list[Any]) -> list[Any]:
        with self._tf.device(self._place):
            output = self._function(**{self._input: self._batch(inputs)})[self._output]
            if output.dtype.is_floating and output.dtype.size < 4:
                output = self._tf.cast(output, self._tf.float32)
        rows = output.numpy()
        return _texts(rows.tolist()) if rows.dtype == object else list(rows)

    def _batch(self, inputs: list[Any]) -> Any:
        if self._dtype == self._tf.string:
            batch = self._tf.constant([_octets(x) for x in inputs])
            return batch if self._shape is None else self._tf.reshape(batch, (len(inputs), *self._shape))
        rows = stack(inputs)
        if self._shape is not None:
            rows = rows.reshape(len(inputs), *self._shape)
        return self._tf.constant(rows.astype(self._dtype.as_numpy_dtype))


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
        raise Refused(f"the model has no {what} {name!r}: it has {', '.join(sorted(found)) or 'none'}")
    return found[name]


def _only_input(specs: Any) -> tuple[str, Any]:
    if len(specs) != 1:
        raise Refused(f"the signature has {len(specs)} inputs ({', '.join(sorted(specs))}), and a query has one")
    [(name, spec)] = specs.items()
    return name, spec


def _chosen(outputs: Any, name: str) -> str:
    if not name and len(outputs) == 1:
        return str(next(iter(outputs)))
    if not name:
        raise Refused(f"the signature has the outputs {', '.join(sorted(outputs))}: name one as the option output")
    _named(outputs, name, "output")
    return name


def _is_single(spec: Any) -> bool:
    """Whether it takes one row alone. It raises Refused where it takes neither one nor any number of them."""
    if spec.shape.rank is None:
        return False
    first = spec.shape[0] if spec.shape.rank else 0
    if first in (None, 1):
        return first == 1
    raise Refused(
        f"the signature takes a tensor of shape {spec.shape}, and batches differ in size: "
        "export it with None as the first dimension"
    )


def _shape(spec: Any) -> tuple[int, ...] | None:
    """That of one input; None where more than one of its dimensions is open: then inputs have to come as they are."""
    dimensions = [None, None] if spec.shape.rank is None else list(spec.shape)[1:]
    return None if dimensions.count(None) > 1 else tuple(-1 if n is None else n for n in dimensions)


def _octets(x: Any) -> Any:
    """A text, or bytes: what a tensor of strings has."""
    if isinstance(x, str):
        return x
    if x.dtype != "uint8":
        raise ValueError("the model takes texts or bytes, and no numbers")
    return x.tobytes()


def _texts(rows: Any) -> Any:
    return list(map(_texts, rows)) if isinstance(rows, list) else rows.decode("utf-8", "replace")
