"""The call that makes this process a host."""

from __future__ import annotations

import os
from typing import Any

from ..container import devices
from ..container.serving import start
from ..container.settings import Settings
from .host import Host, models_below
from .loader import LoaderStuck


def serve_host(models: str | None, **arguments: Any) -> None:
    """Serves the bundles below a folder, each from when the sidecar asks for it. It is TOPSAIL_MODELS_DIR without
    `models`."""

    def run(s: Settings) -> None:
        devices.check(os.environ)
        try:
            Host(s, models_below(models or os.environ.get("TOPSAIL_MODELS_DIR", ""))).run()
        except LoaderStuck as e:
            raise SystemExit(f"topsail: {e}") from None

    start(run, arguments)
