"""Why there is no deployment."""

from ..client_errors import TopsailError


class DeployFailed(TopsailError):
    """The model cannot be packed, fails on its example, or did not become ready; the text says what to do."""
