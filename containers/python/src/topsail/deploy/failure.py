"""Why there is no deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..client.errors import TopsailError

if TYPE_CHECKING:
    from .deployment import Deployment


class DeployFailed(TopsailError):
    """The model cannot be packed, fails on its example, or did not become ready; the text says what to do.

    `deployment` is the version that stays registered, as what became of it has to be seen; None where there is none.
    """

    deployment: Deployment | None = None
