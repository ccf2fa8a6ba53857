"""Why there is no deployment."""

from __future__ import annotations

from typing import Any

from ..client.errors import TopsailError


class DeployFailed(TopsailError):
    """The model cannot be packed, fails on its example, or did not become ready; the text says what to do.

    `deployment` is the Deployment of the version that stays registered, as what became of it has to be seen; None where
    there is none.
    """

    deployment: Any = None  # a Deployment may itself raise this error
