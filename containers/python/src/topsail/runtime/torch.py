"""A TorchScript module."""

from __future__ import annotations

from typing import Any

from .folder import Folder
from .matrix import stack
from .refusal import Refused, need


def load(folder: Folder) -> Module:
    """Option `device` is cpu, cuda, or auto for cuda where there is one; `shape` is that of one input, as 3,224,224."""
    torch = need("torch")
    problem = "" if torch.version.cuda else "is a build for the CPU: require one with CUDA"
    device = folder.device(torch.cuda.is_available(), f"PyTorch {torch.__version__}", problem)
    path = folder.entry()
    try:
        module = torch.jit.load(str(path), map_location=device)
    except (RuntimeError, ValueError) as e:
        raise Refused(f"PyTorch {torch.__version__} cannot load {path.name} as TorchScript: {e}") from e
    module.eval()
    return Module(torch, module, device, folder.shape())


class Module:
    def __init__(self, torch: Any, module: Any, device: str, shape: tuple[int, ...]) -> None:
        self._torch, self._module, self._device, self._shape = torch, module, device, shape
        self._dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), None)

    def predict(self, inputs: list[Any]) -> list[Any]:
        """The module gets a tensor with a row per input, or a list of texts. Of several outputs the first counts."""
        with self._torch.no_grad():
            outputs = self._module(self._batch(inputs))
        if isinstance(outputs, (tuple, list)) and outputs and self._torch.is_tensor(outputs[0]):
            outputs = outputs[0]
        return list(outputs.cpu().numpy()) if self._torch.is_tensor(outputs) else list(outputs)

    def _batch(self, inputs: list[Any]) -> Any:
        if inputs and isinstance(inputs[0], str):
            return inputs
        batch = self._torch.from_numpy(stack(inputs)).to(self._device)
        if self._dtype is not None and batch.is_floating_point():
            batch = batch.to(self._dtype)  # a query of doubles for weights of single precision
        return batch.reshape(len(inputs), *self._shape) if self._shape else batch
