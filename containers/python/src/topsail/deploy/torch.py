"""Modules of PyTorch."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from ..container import stacking
from ..container.signature import Signature
from ..runtime.torch import Module, NamedModule
from .compared import Ask, compared
from .deployment import Deployment
from .example import Example, read
from .failure import DeployFailed
from .named import alone, read_named, reading, with_outputs
from .packing import deploy, file, given, said_scores
from .terms import Terms


def deploy_torch(
    name: str,
    module: Any,
    example: Any,
    *,
    device: str = "cpu",
    scores: str | None = None,
    classes: Iterable[Any] | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a module of PyTorch as TorchScript: one that is that already, else it is scripted, or traced with the
    example. It gets a tensor with a row per input; with a dict as the example, by the names of forward's arguments, one
    for each. `device` is cpu, cuda, or auto. `scores` says that the output is of classes: "softmax" for logits, or
    "probabilities"; `classes` are their names."""
    said = Terms.of(terms)
    if isinstance(example, Mapping):
        script, shown = _named(module, example, input_type)
    else:
        shown = read(example, input_type, shaped=True)
        script = _torchscript(module, lambda torch: _batch(torch, module, shown))
    options = given(device=device if device != "cpu" else None) | said_scores(scores, classes)
    if shown.shape:
        options["shape"] = ",".join(map(str, shown.shape))
    frozen = file("model.pt", _saved(script), "torch")
    comparison = compared(said.check, [example], _eager(module, shown), reading(shown))
    return deploy(name, "torch", "model.pt", frozen, shown, shown.length, options, said, comparison)


def _eager(module: Any, shown: Example) -> Ask:
    """The module itself, as TorchScript is asked."""
    torch = import_module("torch")
    if not isinstance(module, torch.jit.ScriptModule):
        module = module.eval()
    if signature := shown.signature:
        own = NamedModule(torch, module, "cpu")
        return lambda table: stacking.call(own.predict, [signature.read(signature.example(row)) for row in table])
    plain = Module(torch, module, "cpu", shown.shape)
    return lambda table: plain.predict([import_module("numpy").asarray(row).reshape(-1) for row in table])


def _named(module: Any, example: Mapping[str, Any], input_type: str | None) -> tuple[Any, Example]:
    """The module as TorchScript, and the example with the outputs that it gives for it."""
    shown = read_named(example, input_type)
    script = _torchscript(module, lambda torch: _arguments(torch, module, shown, example))
    return script, with_outputs(shown, example, alone(NamedModule(import_module("torch"), script, "cpu").predict))


def _torchscript(module: Any, batch: Callable[[Any], Any]) -> Any:
    """Much of Python is no TorchScript; then what happens with the example, as a batch of one, is recorded."""
    torch = import_module("torch")
    if isinstance(module, torch.jit.ScriptModule):
        return module
    module = module.eval()
    try:
        return torch.jit.script(module)
    except Exception as unscripted:
        try:
            return torch.jit.trace(module, batch(torch), strict=False)  # a dict of outputs is fine
        except Exception as e:
            raise DeployFailed(f"the module is no TorchScript ({unscripted}), and fails on the example: {e}") from e


def _batch(torch: Any, module: Any, example: Example) -> Any:
    dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
    return torch.tensor(example.value, dtype=dtype).reshape(1, *(example.shape or (-1,)))


def _arguments(torch: Any, module: Any, shown: Example, example: Mapping[str, Any]) -> tuple[Any, ...]:
    """In the order of forward's, by which tracing takes them."""
    signature = shown.signature or Signature()
    rows = stacking.stack([signature.read(signature.example(example))])
    given = NamedModule(torch, module, "cpu").arguments(rows)
    return tuple(given.pop(name) for name in inspect.signature(module.forward).parameters if name in given)


def _saved(script: Any) -> bytes:
    buffer = io.BytesIO()
    import_module("torch").jit.save(script, buffer)
    return buffer.getvalue()
