"""A TorchScript module."""

from __future__ import annotations

from typing import Any

from ..container.signature import Signature, Tensor
from . import torchserve
from .failure import PermanentFailure, need
from .folder import Folder
from .matrix import stack
from .named import Arrays
from .output_scores import OutputScores


def load(folder: Folder) -> Module | NamedModule | torchserve.ImageModel:
    """Option `device` is cpu, cuda, or auto for cuda where there is one; `shape` is that of one input, as 3,224,224.
    `scores` is softmax or probabilities where the output says that of classes, whose names are `classes`. `handler` is
    one of TorchServe's for images."""
    torch = need("torch")
    problem = "" if torch.version.cuda else "is a build for the CPU: require one with CUDA"
    device = folder.device(torch.cuda.is_available(), f"PyTorch {torch.__version__}", problem)
    path = folder.entry()
    try:
        module = torch.jit.load(str(path), map_location=device)
    except (RuntimeError, ValueError) as e:
        raise PermanentFailure(f"PyTorch {torch.__version__} cannot load {path.name} as TorchScript: {e}") from e
    module.eval()
    if handler := folder.option("handler", "", ("", torchserve.CLASSIFIER, torchserve.SEGMENTER)):
        return torchserve.handling(handler, lambda batch: _forward(torch, module, device, batch), folder.path)
    scores = OutputScores.of(folder)
    if folder.named:
        return NamedModule(torch, module, device, scores, folder.named)
    return Module(torch, module, device, folder.shape(), scores)


class Module:
    def __init__(
        self, torch: Any, module: Any, device: str, shape: tuple[int, ...], scores: OutputScores | None = None
    ) -> None:
        self._scores = scores
        self._torch, self._module, self._device, self._shape = torch, module, device, shape
        self._dtype = _dtype(module)

    def predict(self, inputs: list[Any]) -> list[Any]:
        """The module gets a tensor with a row per input, or a list of texts. Of several outputs the first counts."""
        with self._torch.no_grad():
            outputs = self._module(self._batch(inputs))
        if isinstance(outputs, (tuple, list)) and outputs and self._torch.is_tensor(outputs[0]):
            outputs = outputs[0]
        if not self._torch.is_tensor(outputs):
            return list(outputs)
        array = outputs.cpu().numpy()
        return self._scores.beside(array) if self._scores else list(array)

    def _batch(self, inputs: list[Any]) -> Any:
        if inputs and isinstance(inputs[0], str):
            return inputs
        batch = _tensor(self._torch, stack(inputs), self._device, self._dtype)
        return batch.reshape(len(inputs), *self._shape) if self._shape else batch


def _forward(torch: Any, module: Any, device: str, batch: Any) -> Any:
    """The output of a module for an array, as one. Models for images may give a dict with `out`."""
    with torch.no_grad():
        outputs = module(_tensor(torch, batch, device, _dtype(module)))
    return (outputs["out"] if isinstance(outputs, dict) else outputs).float().cpu().numpy()


class NamedModule:
    """A module whose inputs are the arguments of its forward, or if none has such a name, in the order of the numbers
    at the ends of their names, as in INPUT__0. Of its outputs a tensor alone is `output`, a tuple has `output_0` and so
    on, and a dict has names of its own; where the signature has others, they are in order, too."""

    batched = True

    def __init__(
        self,
        torch: Any,
        module: Any,
        device: str,
        scores: OutputScores | None = None,
        signature: Signature | None = None,
    ) -> None:
        self._scores = scores
        inputs, outputs = (signature.inputs, signature.outputs) if signature else ((), ())
        arguments = {a.name for a in module.forward.schema.arguments} if signature else set()
        self._positions = [] if arguments.intersection(t.name for t in inputs) else _in_order(inputs)
        self._outputs = _in_order(outputs)
        self._torch, self._module, self._device, self._dtype = torch, module, device, _dtype(module)

    def predict(self, inputs: Arrays) -> Arrays | list[Any]:
        arguments = self.arguments(inputs)
        with self._torch.no_grad():
            if self._positions:
                outputs = self._module(*(arguments[name] for name in self._positions))
            else:
                outputs = self._module(**arguments)
        named = self._named(outputs)
        arrays = {name: _array(self._torch, x) for name, x in named.items()}
        return self._scores.beside_named(arrays) if self._scores else arrays

    def _named(self, outputs: Any) -> dict[str, Any]:
        if isinstance(outputs, dict):
            return outputs
        many = isinstance(outputs, (tuple, list)) and outputs and self._torch.is_tensor(outputs[0])
        names = [f"output_{i}" for i in range(len(outputs))] if many else ["output"]
        if self._outputs and not set(names).issuperset(self._outputs):
            names = self._outputs
        return dict(zip(names, outputs if many else [outputs], strict=False))

    def arguments(self, inputs: Arrays) -> dict[str, Any]:
        """A tensor for each array, and a list for one of texts."""
        return {
            name: x.tolist() if x.dtype == object else _tensor(self._torch, x, self._device, self._dtype)
            for name, x in inputs.items()
        }


def _in_order(tensors: tuple[Tensor, ...]) -> list[str]:
    """The names, by the numbers at their ends where all have one."""
    names = [t.name for t in tensors]
    numbers = [name.rpartition("__")[2] for name in names]
    return sorted(names, key=lambda name: int(name.rpartition("__")[2])) if all(map(str.isdecimal, numbers)) else names


def _dtype(module: Any) -> Any:
    """That of the weights; None if there are none."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), None)


def _tensor(torch: Any, array: Any, device: str, dtype: Any) -> Any:
    batch = torch.from_numpy(array).to(device)
    if dtype is not None and batch.is_floating_point():
        batch = batch.to(dtype)  # a query of doubles for weights of single precision
    return batch


def _array(torch: Any, x: Any) -> Any:
    if not torch.is_tensor(x):
        return x
    return (x.float() if x.dtype == torch.bfloat16 else x).cpu().numpy()  # numpy has no bfloat16
