"""Functions and objects of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ..container import stacking
from ..container.execution import Execution, execution_of
from .compared import Ask, compared
from .deployment import Deployment
from .example import Example, read
from .failure import DeployFailed
from .frozen import Frozen, freeze, with_modules
from .named import read_named, reading, with_outputs
from .packing import deploy, with_numpy
from .terms import Terms


def deploy_python_function(
    name: str,
    func: Callable[[list[Any]], Any] | str | Any,
    *,
    example: Any = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a function from a list of inputs to a list of outputs of the same length; or an object or class with such
    a `predict` method, and `setup` and the others of `topsail.serve`; or the name of one, "module:object".

    A dict as the example names the inputs: the function gets dicts, and may return them. What the function uses travels
    with it: installed packages as requirements, other modules as their source.
    """
    said = Terms.of(terms)
    shown = _named(func, example, input_type) if isinstance(example, Mapping) else read(example, input_type)
    frozen, entry = frozen_function(func)
    if shown.input_type not in ("strings", "bytes"):
        frozen.distributions |= with_numpy()
    table, ask = None if example is None else [example], _here(func)
    comparison = compared(said.check, table, ask, reading(shown)) if ask else None
    return deploy(name, "python", entry, frozen, shown, 0, {}, said, comparison)


def _here(func: Any) -> Ask | None:
    """How a plain function is asked here. What has to be made or loaded first is not."""
    if isinstance(func, (str, type)) or hasattr(func, "predict") or execution_of(func) is not Execution.BATCHES:
        return None
    return (lambda table: stacking.call(func, table)) if getattr(func, "batched", False) else func


def frozen_function(func: Any) -> tuple[Frozen, str]:
    """A function, class or object, or the name of one, with what it uses, and the entry of its bundle."""
    if isinstance(func, str):
        return with_modules(Frozen(b""), {_importable(func)}), func
    if not callable(getattr(func, "predict", func)):
        raise DeployFailed(f"a {type(func).__name__} cannot be deployed: give a function, or an object with predict")
    frozen = freeze(func)
    frozen.sources["function.pkl"] = frozen.data
    return frozen, "function.pkl"


def _named(func: Any, example: Mapping[str, Any], input_type: str | None) -> Example:
    """With the outputs of a plain function; what has to be made or loaded first is not run here."""
    shown, ask = read_named(example, input_type), _here(func)
    return with_outputs(shown, example, lambda x: ask([x])[0], any_length=True) if ask else shown


def _importable(func: str) -> str:
    """The module that "module:object" names."""
    module, colon, name = func.partition(":")
    try:
        if not colon or not name or not hasattr(import_module(module), name.partition(".")[0]):
            raise DeployFailed(f"{func!r} names nothing that can be imported here: write module:object")
    except ImportError as e:
        raise DeployFailed(f"{func!r} cannot be imported here: {e}") from None
    return module
