"""Bundles, where versions find them."""

from __future__ import annotations

from ...bundle import Bundle
from ..call import Call
from ..errors import ServerError
from ..http import Answer
from ..items import Items
from . import call
from .record import Artifact
from .resource import Resource, name


class Artifacts(Resource):
    def list(self, *, limit: int | None = None, timeout: float | None = None) -> Items[Artifact]:
        """All bundles by digest."""
        return self._admin.listing("/artifacts", Artifact, timeout, {"limit": limit})

    def get(self, digest: str | Artifact | Bundle, *, timeout: float | None = None) -> Artifact:
        return self._admin.send(call.get(_path(digest), Artifact.read), timeout)

    def upload(self, bundle: Bundle | bytes, *, timeout: float | None = None) -> Artifact:
        """Stores a bundle; one that is there already is not stored twice. The time is for the whole of it."""
        data = bundle.data if isinstance(bundle, Bundle) else bundle
        sent = Call("POST", "/artifacts", Artifact.read, data, {"Content-Type": "application/zip"}, repeatable=True)
        return self._admin.send(sent, timeout)

    def download(self, digest: str | Artifact, *, timeout: float | None = None) -> bytes:
        """The archive of a bundle; `topsail.bundle.read` takes it apart."""

        def read(answer: Answer) -> bytes:
            if answer.status != 200:
                raise ServerError(f"the content of {digest} came with status {answer.status}", answer.status)
            return answer.body

        return self._admin.send(call.get(_path(digest, "content"), read), timeout)

    def delete(self, digest: str | Artifact, *, timeout: float | None = None) -> None:
        """Deletes a bundle that no version uses; else it raises Conflict."""
        deletion = Call("DELETE", _path(digest), call.nothing, repeatable=True, vanishing=True)
        return self._admin.send(deletion, timeout)


def _path(digest: str | Artifact | Bundle, *rest: str) -> str:
    return call.path("artifacts", name(digest, "digest"), *rest)
