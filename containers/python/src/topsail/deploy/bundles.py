"""Bundles that were made before, and hosts of others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..bundle import Bundle
from .deployment import Deployment
from .frozen import Frozen
from .packing import pack, with_numpy
from .rollout import roll_out
from .terms import Terms


def deploy_bundle(name: str, bundle: Bundle, **terms: Any) -> Deployment:
    """Deploys a bundle that was made before, with `topsail.bundle.build` or `read`."""
    return roll_out(name, bundle, Terms.of(terms))


def deploy_host(
    name: str,
    packages: Iterable[str] = (),
    *,
    memory_mb: int = 512,
    **terms: Any,
) -> Deployment:
    """Deploys a host, in whose replicas other models are held that are deployed with `hosted_by=name`: those that are
    asked, as many as there is memory for. They share its environment: `packages` are distributions, as scikit-learn,
    that they need, in the versions that are installed here."""
    said = replace(Terms.of(terms), app=False)
    bundle = pack("host", "", Frozen(b"", set(packages) | with_numpy()), None, 0, {}, said)
    return roll_out(name, bundle, said, host={"memory_mb": memory_mb})
