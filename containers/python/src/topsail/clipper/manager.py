"""A container manager for Clipper's own admin package."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..client.clipper import content
from ..client.errors import Timeout, TopsailError, Unavailable
from ..client.sync import Client
from . import package
from .child import Child
from .image import image as bundled

_STARTING = 60.0  # seconds


class TopsailContainerManager:
    """Builds models and starts replicas through Topsail for a `clipper_admin.ClipperConnection`.

    Addresses are host:port, as Clipper has them; where the management service wants a key, it is `key` or
    TOPSAIL_API_KEY. `program` is what start_clipper starts as `topsail local`, with `arguments` more.
    """

    def __init__(
        self,
        cluster_name: str = "topsail",
        *,
        query_addr: str = "127.0.0.1:1337",
        admin_addr: str = "127.0.0.1:1338",
        metric_addr: str | None = None,
        key: str | None = None,
        program: str = "topsail",
        arguments: Sequence[str] = (),
    ) -> None:
        self.cluster_identifier = cluster_name
        self._query_addr, self._admin_addr, self._metric_addr = query_addr, admin_addr, metric_addr
        self._program, self._arguments = program, list(arguments)
        self._client = Client(f"http://{query_addr}", admin_url=f"http://{admin_addr}", key=key)
        self._child: Child | None = None
        package.adapt()

    def start_clipper(
        self,
        query_frontend_image: str,
        mgmt_frontend_image: str,
        frontend_exporter_image: str,
        cache_size: int,
        qf_http_thread_pool_size: int,
        qf_http_timeout_request: float,
        qf_http_timeout_content: float,
        num_frontend_replicas: int = 1,
    ) -> None:
        """Starts Topsail on this machine, unless it answers already. There are no images, and no threads or time
        limits to set; `cache_size` is that of the prediction cache, in bytes."""
        if self._answers():
            return
        program = shutil.which(self._program)
        if program is None:
            raise _clipper_error(
                f"the program {self._program!r} is not on the PATH: name it by program=, or start Topsail"
            )
        command = [program, "local", "--gateway-addr", self._query_addr, "--web-addr", self._admin_addr]
        command += ["--gateway-cache-bytes", str(cache_size), *self._arguments]
        try:
            self._child = Child(command)
            self._child.wait(self._answers, _STARTING)
        except (OSError, RuntimeError) as e:
            self._child = None
            raise _clipper_error(f"Topsail does not start: {e}") from e

    def connect(self) -> None:
        with _as_clipper():
            self._client.system.me()

    def build_model(self, model_data_path: str, packages: Sequence[str] = ()) -> str:
        """Uploads what a deployer of clipper_admin has saved in a folder as a bundle, and returns its digest, which is
        what deploy_model takes as the image."""
        with _as_clipper():
            return self._client.artifacts.upload(bundled(Path(model_data_path), packages)).digest

    def deploy_model(
        self, name: str, version: str, input_type: str, image: str, num_replicas: int = 1, **_: Any
    ) -> None:
        """`image` is the digest of a bundle, or on a cluster a Docker image. Clipper's package registers the version
        after this, so it is prepared here: its replicas start, and it is not current yet."""
        with _as_clipper():
            self._client.versions.create(
                name,
                str(version),
                keep_current=True,
                input_type=input_type,
                replicas=num_replicas,
                prepared=True,
                **content(image),
            )

    def get_num_replicas(self, name: str, version: str) -> int:
        """Those that are ready."""
        with _as_clipper():
            return self._client.get_num_replicas(name, version)

    def set_num_replicas(self, name: str, version: str, input_type: str, image: str, num_replicas: int) -> None:
        with _as_clipper():
            self._client.set_num_replicas(name, num_replicas, version)

    def get_logs(self, logging_dir: str) -> list[str]:
        """Writes the last lines of every replica into a file of its own, and returns the files."""
        folder = Path(logging_dir).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        with _as_clipper():
            files = [self._keep(folder, r.model, r.version, r.id) for r in self._client.replicas.list()]
        if self._child is not None:
            files.append(str(shutil.copyfile(self._child.log, folder / "topsail.log")))
        return files

    def stop_models(self, models: Mapping[str, Sequence[str]]) -> None:
        """Takes all replicas of these versions away; Clipper's package deletes the versions after this."""
        with _as_clipper():
            self._client.stop_versioned_models(models)

    def stop_all_model_containers(self) -> None:
        with _as_clipper():
            self._client.stop_models([model.name for model in self._client.models.list()])

    def stop_all(self, graceful: bool = True) -> None:
        """Stops Topsail if this manager has started it; else takes all replicas away."""
        if self._child is None:
            self.stop_all_model_containers()
        else:
            self._child.stop(graceful)
            self._child = None

    def get_admin_addr(self) -> str:
        return self._admin_addr

    def get_query_addr(self) -> str:
        return self._query_addr

    def get_metric_addr(self) -> str:
        """The Prometheus of `metric_addr`; without one the gateway, which has its own metrics at /metrics."""
        return self._metric_addr or self._query_addr

    def _answers(self) -> bool:
        try:
            self._client.system.me(timeout=1.0)
            return self._client.health(timeout=1.0)
        except (Unavailable, Timeout):
            return False
        except TopsailError:  # it wants a key, or is something else: starting another would not help
            return True

    def _keep(self, folder: Path, model: str, version: str, replica: str) -> str:
        file = folder / f"{model}_{version}_{replica}.log"
        lines = self._client.replicas.logs(replica, lines=10_000)
        file.write_text("".join(line + "\n" for line in lines))
        return str(file)


@contextmanager
def _as_clipper() -> Iterator[None]:
    """What Clipper's package expects to be raised."""
    try:
        yield
    except TopsailError as e:
        raise _clipper_error(str(e)) from e


def _clipper_error(message: str) -> Exception:
    try:
        from clipper_admin import ClipperException
    except ImportError:
        return TopsailError(message)
    error: Exception = ClipperException(message)
    return error
