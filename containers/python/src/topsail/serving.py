"""The one call that turns a Python program into a model container."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from . import settings
from .container import Container, SidecarGone
from .settings import SettingsError


def serve(
    model: Any,
    input_type: str | None = None,
    *,
    input_length: int | None = None,
    sidecar: str | None = None,
    name: str | None = None,
    version: str | None = None,
    token: str | None = None,
    retry_singly: bool = True,
    give_up: float = 60.0,
    health_every: float = 5.0,
) -> None:
    """Serves a model until Topsail stops it (SIGTERM), then returns.

    `model` is a function from a list of inputs to a list of outputs of the same length, or an object or class with
    such a `predict` method and, as wanted, setup, decode, encode, warmup, health, correct, accuracy and teardown.

    `input_type` is bytes, ints, floats, doubles or strings; `input_length` is the number of elements, if it is fixed.
    Both, and where the sidecar is (`host:port`), come from the environment when Topsail starts the program.

    `retry_singly`: when predict raises for a batch, it is called again with each input alone, so that one bad input
    fails alone. `give_up`: seconds without a connection to the sidecar before the program ends with an error.
    `health_every`: seconds between two calls of `health`.

    It raises SystemExit with a sentence for people when there is no sidecar or when the model cannot be served.
    """
    serve_from(
        lambda: model,
        input_type=input_type,
        input_length=input_length,
        sidecar=sidecar,
        model=name,
        version=version,
        token=token,
        retry_singly=retry_singly,
        give_up=give_up,
        health_every=health_every,
    )


def serve_from(source: Callable[[], Any], **arguments: Any) -> None:
    """Serves what `source` returns. It is called when the sidecar knows already that a model is loading, because
    importing one may take longer than everything else."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        Container(source, settings.read(os.environ, **arguments)).run()
    except (SettingsError, SidecarGone) as e:
        raise SystemExit(f"topsail: {e}") from None
