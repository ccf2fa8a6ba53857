"""Where a server is, how it is spoken to, and what its answers mean: all that is the same however calls travel."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from ..version import __version__
from . import errors
from .call import Call
from .deadline import Deadline
from .errors import ServerError
from .http import Answer, Request

T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """A gateway or a management service. It raises ValueError for a URL that is no address of one."""

    url: str
    tls: ssl.SSLContext | None
    shown: Mapping[str, str]  # the headers of every call
    timeout: float  # seconds, for calls that are given no other
    what: str
    like: str  # an address of one
    speaker: str  # whose answers are expected
    base: str = ""  # of its paths, below that of the URL
    timed: bool = False  # it is told how much time there is

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError(f"{self.url!r} is no address of {self.what}: use one like {self.like}")

    def __str__(self) -> str:
        return self.url

    @property
    def host(self) -> str:
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

    def deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self.timeout if timeout is None else timeout)

    def request(self, call: Call[T], deadline: Deadline) -> Request:
        told = {"X-Timeout-Ms": _milliseconds(deadline)} if self.timed else {}
        return Request(call.method, self.base + call.path, call.body, {**call.headers, **told})

    def result(self, call: Call[T], answer: Answer, again: bool) -> T:
        """What the answer says, or the error that it stands for; `again` when the call had been sent before."""
        if call.vanishing and answer.status == 404 and again:
            answer = Answer(204, None, b"")  # the attempt that broke off has deleted it
        if answer.status >= 300 and answer.status != call.also:
            raise refusal(answer)
        try:
            return call.read(answer)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            beginning = answer.body[:100].decode("utf-8", "replace")
            raise ServerError(f"this is no answer of {self.speaker}: {beginning!r}", answer.status) from None


def targets(
    url: str | None,
    admin_url: str | None,
    key: str | None,
    timeout: float,
    ca_file: str | None,
    verify: bool | ssl.SSLContext,
) -> tuple[Target, Target]:
    """The gateway and the management service that a client was given, or else the environment names."""
    if url is None:
        url = os.environ.get("TOPSAIL_URL") or "http://127.0.0.1:1337"
    if admin_url is None:
        admin_url = os.environ.get("TOPSAIL_ADMIN_URL") or "http://127.0.0.1:1338"
    shown = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": f"topsail-python/{__version__}"}
    shown |= _authorization(_key_of_environment() if key is None else key)
    gateway = Target(
        url,
        _tls(url, verify, ca_file),
        shown | {"Content-Type": "application/json"},
        timeout,
        what="a gateway",
        like="http://127.0.0.1:1337",
        speaker="a Topsail gateway",
        timed=True,
    )
    management = Target(
        admin_url,
        _tls(admin_url, verify, ca_file),
        shown,
        timeout,
        what="a management service",
        like="http://127.0.0.1:1338",
        speaker="Topsail's management",
        base="/api/v1",
    )
    return gateway, management


def refusal(answer: Answer) -> errors.TopsailError:
    return errors.of_answer(answer.status, answer.body, answer.retry_after)


def _milliseconds(deadline: Deadline) -> str:
    """What the gateway may take: less than there is, so that its answer has time to arrive."""
    left = deadline.left()
    return str(max(1, int(1000 * (left - min(left / 10, 0.25)))))


def _key_of_environment() -> str | None:
    if file := os.environ.get("TOPSAIL_API_KEY_FILE"):
        with open(file, encoding="ascii") as f:
            return f.read().strip()
    return os.environ.get("TOPSAIL_API_KEY") or None


def _authorization(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not key or not all("!" <= c <= "~" for c in key):
        raise ValueError("a key is not empty, and has no spaces or characters beyond ASCII")
    return {"Authorization": f"Bearer {key}"}


def _tls(url: str, verify: bool | ssl.SSLContext, ca_file: str | None) -> ssl.SSLContext | None:
    if urlsplit(url).scheme != "https":
        return None
    if isinstance(verify, ssl.SSLContext):
        return verify
    context = ssl.create_default_context(cafile=ca_file)
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
