"""What a container has to know: where its sidecar is, and what it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import input_type, signature
from .signature import Signature

NOT_STARTED = """\
TOPSAIL_SIDECAR is not set, so there is no sidecar to connect to.
This program is a model container, and Topsail starts it: name it as the `command` of a [[model]] in topsail.toml.
To try the model by itself:  python -m topsail check module:object --input-type doubles"""


class SettingsError(ValueError):
    """The environment or the arguments make no sense; the text says what to change."""


@dataclass(frozen=True)
class Settings:
    host: str
    port: int
    model: str
    version: str
    input_type: str | None = None  # None: the model says it
    input_length: int | None = None  # elements; None: the model says it; 0: any
    token: str = ""
    token_file: str = ""  # holds the token, when token is empty
    replica: str = ""
    give_up: float = 60.0  # seconds without a connection after which the container ends with an error
    health_every: float = 5.0  # seconds between two calls of the model's health
    retry_singly: bool = True  # after a failed batch, call predict once per input
    concurrency: int | None = None  # queries that run side by side at most; None: the model says it
    session: bool = True  # whether answers are cached by user and context, so that the model may see them
    signature: Signature | None = None  # named inputs and outputs of the version
    stage: str = ""  # of a pipeline, which is served
    pipeline: str = ""  # with a stage: all stages, in JSON

    def current_token(self) -> str:
        """The token to show now; the file may come later than the container and may change. It raises OSError."""
        if self.token or not self.token_file:
            return self.token
        with open(self.token_file, encoding="utf-8") as file:
            token = file.read().strip()
        if not token:
            raise OSError(f"the token file {self.token_file} is empty")
        return token


def read(environ: Mapping[str, str], **arguments: Any) -> Settings:
    """Settings from the environment that Topsail gives a container; arguments that are not None win."""
    given = {name: value for name, value in arguments.items() if value is not None}
    sidecar = given.pop("sidecar", "") or environ.get("TOPSAIL_SIDECAR", "")
    if not sidecar:
        raise SettingsError(NOT_STARTED)
    host, port = _address(sidecar)
    known = _from_environment(environ) | given
    for name in ("model", "version"):
        if not known.get(name):
            raise SettingsError(f"TOPSAIL_{name.upper()} is not set: Topsail sets it for containers that it starts")
    try:
        input_type.parse(known.get("input_type") or "doubles")
    except ValueError as e:
        raise SettingsError(str(e)) from None
    return Settings(host=host, port=port, **known)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for name in ("model", "version", "input_type", "token", "token_file", "replica"):
        if text := environ.get("TOPSAIL_" + name.upper()):
            known[name] = text
    if known.get("input_type") == "any":  # of a host, whose models differ
        del known["input_type"]
    known["session"] = environ.get("TOPSAIL_SESSION") == "1"
    if text := environ.get("TOPSAIL_SIGNATURE"):
        try:
            known["signature"] = signature.parse(text)
        except ValueError as e:
            raise SettingsError(f"TOPSAIL_SIGNATURE: {e}") from None
    if text := environ.get("TOPSAIL_INPUT_LENGTH"):
        if not text.isdecimal():
            raise SettingsError(f"TOPSAIL_INPUT_LENGTH={text!r} is not a number of elements")
        known["input_length"] = int(text)
    return known


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise SettingsError(f"the sidecar's address {text!r} is not host:port")
    return host.strip("[]") or "127.0.0.1", int(port)
