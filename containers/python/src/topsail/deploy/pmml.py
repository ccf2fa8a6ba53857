"""PMML models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..container.input_type import TENSORS
from .deployment import Deployment
from .example import read
from .failure import DeployFailed
from .frozen import Frozen
from .named import read_named
from .packing import content, deploy, given
from .pmml_signature import read as signature_of
from .terms import Terms


def deploy_pmml(
    name: str,
    model_or_path: Any,
    example: Any = None,
    *,
    heap: str | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a PMML model: a path, or its bytes. Without an example, queries have the names and types that the model
    itself says. With a list they have the values of the active fields in their order, and with a dict they are texts
    with such a dict as JSON; input_type="tensors" takes the dict by its names, too. `heap` is the memory of Java, like
    "1g"; 256m without. Where it runs it needs Java 17, and topsail-pmml.jar."""
    said = Terms.of(terms)
    model = content(model_or_path)
    if input_type == TENSORS.name or (example is None and input_type is None):
        shown = read_named(example, input_type, signature_of(model))
    else:
        shown = read(json.dumps(example) if isinstance(example, Mapping) else example, input_type)
    if shown.input_type == "bytes":
        raise DeployFailed("a PMML model takes numbers, or texts with a JSON object: give such an example")
    frozen = Frozen(b"", set(), {"model.pmml": model})
    return deploy(name, "pmml", "model.pmml", frozen, shown, shown.length, given(heap=heap), said)
