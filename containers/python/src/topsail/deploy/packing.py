"""From what a deployer has packed to a bundle that is rolled out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import bundle as bundles
from ..bundle import Bundle, BundleError, Manifest
from ..optional import numpy
from ..runtime.output_scores import KINDS
from . import requirements
from .compared import Comparison
from .deployment import Deployment
from .example import Example
from .failure import DeployFailed
from .frozen import Frozen
from .rollout import roll_out
from .terms import Terms


def deploy(
    name: str,
    runtime: str,
    entry: str,
    frozen: Frozen,
    example: Example,
    length: int,
    options: Mapping[str, str],
    terms: Terms,
    comparison: Comparison | None = None,
) -> Deployment:
    if comparison is None and terms.check not in (None, False):
        raise DeployFailed("there is nothing here that check could be compared with: leave it out")
    if _on_cuda(options):
        terms = terms.with_gpu()
    bundle = pack(runtime, entry, frozen, example, length, dict(options) | _filled_up(terms), terms)
    return roll_out(name, bundle, terms, comparison)


def _filled_up(terms: Terms) -> dict[str, str]:
    """The option of a model that takes one number of inputs, because batches are filled up to that."""
    batch = terms.batch or {}
    return {"batch": str(batch["max_size"])} if batch.get("pad") and batch.get("max_size") else {}


def pack(
    runtime: str,
    entry: str,
    frozen: Frozen,
    example: Example | None,
    length: int,
    options: Mapping[str, str],
    terms: Terms,
) -> Bundle:
    """It raises DeployFailed."""
    try:
        manifest = Manifest(
            runtime,
            entry,
            "" if runtime == "pmml" else bundles.PYTHON,
            requirements.pinned(frozen.distributions, terms.requirements, _on_cuda(options)),
            example.input_type if example else "",
            length,
            example.value if example else None,
            terms.description,
            options,
            signature=example.signature if example else None,
        )
        return bundles.build(manifest, frozen.sources)
    except BundleError as e:
        raise DeployFailed(str(e)) from None


def _on_cuda(options: Mapping[str, str]) -> bool:
    """Whether the model runs on a GPU, wherever it is deployed from."""
    return options.get("device") == "cuda"


def given(**options: str | None) -> dict[str, str]:
    """The options that are said."""
    return {k: v for k, v in options.items() if v is not None}


def scored(scores: bool | None) -> dict[str, str]:
    """The option of runtimes that know by themselves how sure a model is."""
    return {} if scores is None else {"scores": "true" if scores else "false"}


def said_scores(scores: str | None, classes: Iterable[Any] | None) -> dict[str, str]:
    """The options of runtimes that have to be told what an output is. It raises DeployFailed."""
    if scores not in (None, *KINDS):
        raise DeployFailed(f"scores is {scores!r}: use {' or '.join(map(repr, KINDS))}, or leave it out")
    if classes is None:
        return given(scores=scores)
    if scores is None:
        raise DeployFailed("classes name the scores of the output: give scores, too")
    return {"scores": scores, "classes": named_classes(classes)}


def named_classes(classes: Iterable[Any]) -> str:
    """Labels as a list in JSON."""
    return json.dumps([c.item() if hasattr(c, "item") else c for c in classes])


def file(name: str, data: bytes, module: str) -> Frozen:
    """A model in a format of its own, which the module reads."""
    distributions = requirements.of_module(module) or {requirements.need(module, "trying the model")}
    return Frozen(b"", distributions | with_numpy(), {name: data})


def with_numpy() -> set[str]:
    """Inputs are arrays of numpy where that is installed, so they must be the same where the model runs."""
    return set() if numpy is None else requirements.of_module("numpy") or {"numpy"}


def content(model: Any) -> bytes:
    """The bytes of a model that is given as such, as a path, or as an object that can write itself."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        try:
            return Path(model).read_bytes()
        except OSError as e:
            raise DeployFailed(f"the model {os.fspath(model)!r} cannot be read: {e.strerror}") from None
    if hasattr(model, "SerializeToString"):
        data: bytes = model.SerializeToString()
        return data
    raise DeployFailed(f"the model is a {type(model).__name__}: give a path, bytes, or an object of the package onnx")


def files_of(folder: Path, below: str = "") -> dict[str, bytes]:
    """The files of a folder, by their names in a bundle."""
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {below + p.relative_to(folder).as_posix(): p.read_bytes() for p in found}
