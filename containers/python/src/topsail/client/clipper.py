"""Clipper's names for what a client does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import NotFound

if TYPE_CHECKING:
    from .admin.apps import Apps
    from .admin.models import Models
    from .admin.record import App, Version
    from .admin.replicas import Replicas
    from .admin.versions import Versions

T = TypeVar("T")


class ClipperNames:
    """Clipper's names for what the resources of a client do, which can do more: `client.apps`, `client.versions`."""

    apps: Apps
    models: Models
    versions: Versions
    replicas: Replicas

    def register_application(self, name: str, input_type: str, default_output: Any, slo_micros: int) -> None:
        text = default_output if isinstance(default_output, str) else json.dumps(default_output)
        self.apps.create(name, input_type=input_type, default_output=text, slo=slo_micros / 1e6)

    def unregister_application(self, name: str) -> None:
        self.apps.delete(name)

    def link_model_to_app(self, app_name: str, model_name: str) -> None:
        self.apps.link(app_name, model_name)

    def unlink_model_from_app(self, app_name: str, model_name: str) -> None:
        self.apps.unlink(app_name, model_name)

    def deploy_model(
        self,
        name: str,
        version: str | int,
        input_type: str,
        image: str,
        labels: Sequence[str] | None = None,
        num_replicas: int = 1,
        batch_size: int = -1,
    ) -> None:
        """`image` is the digest of a bundle, or on a cluster a Docker image."""
        more: dict[str, Any] = {} if batch_size < 1 else {"batch": {"max_size": batch_size}}
        more |= {"labels": list(labels)} if labels else {}
        self.versions.create(name, str(version), input_type=input_type, replicas=num_replicas, **content(image), **more)

    def get_all_apps(self, verbose: bool = False) -> list[Any]:
        """Names, or with verbose the apps."""
        return [app if verbose else app.name for app in self.apps.list()]

    def get_app_info(self, name: str) -> App | None:
        return _or_none(lambda: self.apps.get(name))

    def get_linked_models(self, app_name: str) -> list[str]:
        return list(self.apps.get(app_name).models or [])

    def get_all_models(self, verbose: bool = False) -> list[Any]:
        """`MODEL:VERSION`, or with verbose the versions."""
        found = [(model.name, v) for model in self.models.list() for v in self.versions.list(model)]
        return [v if verbose else f"{name}:{v.version}" for name, v in found]

    def get_model_info(self, name: str, version: str | int) -> Version | None:
        return _or_none(lambda: self.versions.get(name, str(version)))

    def get_current_model_version(self, name: str) -> str:
        return self.models.get(name).current

    def set_model_version(self, name: str, version: str | int, num_replicas: int | None = None) -> None:
        self.models.set_current(name, str(version))
        if num_replicas is not None:
            self.set_num_replicas(name, num_replicas, version)

    def get_num_replicas(self, name: str, version: str | int | None = None) -> int:
        """How many are ready, of the current version if none is named."""
        wanted = self.get_current_model_version(name) if version is None else str(version)
        return sum(r.state == "ready" for r in self.replicas.list(name, wanted))

    def set_num_replicas(self, name: str, num_replicas: int, version: str | int | None = None) -> None:
        wanted = self.get_current_model_version(name) if version is None else str(version)
        self.versions.scale(name, wanted, num_replicas)

    def get_all_model_replicas(self, verbose: bool = False) -> list[Any]:
        """Ids, or with verbose the replicas."""
        return [r if verbose else r.id for r in self.replicas.list()]

    def stop_models(self, names: Sequence[str] | str) -> None:
        """Leaves all versions of the models without replicas; Clipper's client deletes them, too."""
        for name in [names] if isinstance(names, str) else names:
            self.stop_versioned_models({name: [v.version for v in self.versions.list(name)]})

    def stop_versioned_models(self, versions: Mapping[str, Sequence[str]]) -> None:
        for name, some in versions.items():
            for version in some:
                self.versions.scale(name, version, 0)


def content(image: str) -> dict[str, Any]:
    """What Clipper calls an image, as members of a version."""
    return {"bundle": image} if image.startswith("sha256:") else {"image": image}


def _or_none(get: Callable[[], T]) -> T | None:
    try:
        return get()
    except NotFound:
        return None
