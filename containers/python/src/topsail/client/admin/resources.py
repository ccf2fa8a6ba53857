"""All resources of a client."""

from __future__ import annotations

from .apps import Apps
from .artifacts import Artifacts
from .connection import Admin
from .keys import Keys
from .models import Models
from .replicas import Replicas
from .streams import Streams
from .system import System
from .versions import Versions


class Resources:
    """What a client manages."""

    def __init__(self, admin: Admin) -> None:
        self.apps = Apps(admin)
        self.models = Models(admin)
        self.versions = Versions(admin)
        self.replicas = Replicas(admin)
        self.artifacts = Artifacts(admin)
        self.streams = Streams(admin)
        self.keys = Keys(admin)
        self.system = System(admin)
        self.decisions = self.system.decisions
        self.audit = self.system.audit
        self.usage = self.system.usage
        self.events = self.system.events
