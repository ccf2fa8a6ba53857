"""Bundles: a model version in one archive, with a manifest of what it needs and what is in it.

A bundle is a zip archive with `manifest.json` and exactly the files that the manifest lists. The same content gives the
same bytes, and so the same digest, by which Topsail knows a bundle.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .container import input_type, signature as signatures
from .container.signature import Signature

FORMAT = 1
PYTHON = "{}.{}".format(*sys.version_info[:2])  # this one, as a manifest has it
MANIFEST = "manifest.json"
RUNTIMES = (
    "python",
    "sklearn",
    "onnx",
    "torch",
    "tensorflow",
    "xgboost",
    "lightgbm",
    "r",
    "pyspark",
    "pmml",
    "lora",
    "host",
    "command",
)
ALONE = ("r", "pyspark", "pmml", "lora", "host", "command")  # of these, those that are or start a program of their own

_MOST_FILES = 10_000
_MOST_BYTES = 8 << 30  # of all files, unpacked
_MOST_MANIFEST = 1 << 20  # bytes
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip archive can name
_MODE = (stat.S_IFREG | 0o644) << 16
_VERSION = r"[A-Za-z0-9][A-Za-z0-9.!+_*-]*"
_CLAUSE = rf"(?:===|==|~=|!=|<=|>=|<|>)\s*{_VERSION}"
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"  # the name
    r"(?:\[[A-Za-z0-9._-]+(?:\s*,\s*[A-Za-z0-9._-]+)*\])?"  # extras
    rf"(?:\s*{_CLAUSE}(?:\s*,\s*{_CLAUSE})*)?"
    r"(?:\s*;(?!.*\s-)[A-Za-z0-9_.,'\"<>=!~()*+ -]+)?"  # when it is needed; no word of it may be an option of pip
)


class BundleError(ValueError):
    """It is no bundle, or it cannot become one; the text says what to change."""


@dataclass(frozen=True)
class Manifest:
    """What a bundle says about itself. Members that are None or empty are left out of the archive."""

    runtime: str
    entry: str = ""  # a file of the bundle, or module:object
    python: str = ""  # such as 3.11: what runs it, and the only one that may read what is pickled
    requirements: tuple[str, ...] = ()  # for pip: a name, with versions
    input_type: str = ""
    input_length: int = 0  # elements; 0: any
    example: Any = None  # an input as JSON
    description: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # of the runtime
    command: tuple[str, ...] = ()  # of the runtime "command"
    signature: Signature | None = None  # named inputs and outputs

    def __post_init__(self) -> None:
        """It raises BundleError."""
        if self.runtime not in RUNTIMES:
            raise BundleError(f"the runtime {self.runtime!r} is unknown: use {', '.join(RUNTIMES)}")
        if self.python and not re.fullmatch(r"3\.\d{1,2}", self.python):
            raise BundleError(f"python {self.python!r} is no version: write one like 3.11")
        for requirement in self.requirements:
            check_requirement(requirement)
        if self.input_type:
            _check_input_type(self.input_type)
        self._check_signature()
        if self.input_length < 0:
            raise BundleError(
                f"the input length {self.input_length} is negative: leave it out if inputs differ in length"
            )
        self._check_program()

    def _check_signature(self) -> None:
        """With named inputs the input type is "tensors", also where that is left out, as Topsail completes it."""
        named = self.signature is not None and bool(self.signature.inputs)
        try:
            if self.signature:
                self.signature.check()
        except ValueError as e:
            raise BundleError(f"the signature is not valid: {e}") from None
        if named and not self.input_type:
            object.__setattr__(self, "input_type", "tensors")
        if named != (self.input_type == "tensors"):
            raise BundleError(
                f"the input type is {self.input_type!r}: with a signature that has inputs leave it out, and without "
                "one it cannot be 'tensors'"
            )
        if named and self.input_length:
            raise BundleError("an input length is for vectors: leave it out where a signature has inputs")

    def _check_program(self) -> None:
        program = self.runtime == "command"
        if program != bool(self.command):
            raise BundleError("a command belongs to the runtime 'command', and to no other")
        if program and (self.python or self.requirements or self.entry):
            raise BundleError("the runtime 'command' has its command alone: no python, requirements or entry")
        if self.runtime == "pmml":
            self._check_pmml()
        elif self.runtime == "host":
            self._check_host()
        elif self.runtime == "lora":
            if self.python or self.requirements or not (self.entry or self.options.get("adapter")):
                raise BundleError(
                    "the runtime 'lora' is run by an engine: it takes the adapter's folder as its entry, or the option "
                    "adapter, and no python and no requirements"
                )
        elif not program and not (self.python and self.entry):
            raise BundleError(
                f"the runtime {self.runtime!r} needs an entry, and the python that runs it, like {PYTHON}"
            )

    def _check_pmml(self) -> None:
        if self.python or self.requirements:
            raise BundleError("the runtime 'pmml' is a program in Java: it takes no python and no requirements")
        if not self.entry or ":" in self.entry:
            raise BundleError(f"the runtime 'pmml' needs the model's file as its entry, and not {self.entry!r}")
        heap = self.options.get("heap", "256m")
        if not re.fullmatch(r"[1-9][0-9]{0,4}[mg]", heap):
            raise BundleError(f"the option heap = {heap!r} is no amount of memory: write one like 512m or 2g")

    def _check_host(self) -> None:
        if self.entry or self.input_type or self.options:
            raise BundleError(
                "the runtime 'host' holds models of other bundles: it takes no entry, input_type or options"
            )
        if not self.python:
            raise BundleError(f"the runtime 'host' needs the python that runs it, like {PYTHON}")

    def members(self) -> dict[str, Any]:
        """All that is said, for JSON."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {k: v for k, v in said.items() if (v is not None if k == "example" else v)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
        return plain | ({"signature": self.signature.document()} if self.signature else {})

    @classmethod
    def of_members(cls, members: Mapping[str, Any]) -> Manifest:
        """The reverse, for members from an untrusted source. It raises BundleError."""
        known = {k: members[k] for k in (f.name for f in fields(cls)) if k in members}
        try:
            for name, kind in _KINDS.items():
                if name in known and (not isinstance(known[name], kind) or isinstance(known[name], bool)):
                    raise TypeError(f"{name} is a {type(known[name]).__name__}")
            for name in ("requirements", "command"):
                if name in known:
                    known[name] = tuple(map(_text, known[name]))
            if "options" in known:
                known["options"] = {k: _text(v) for k, v in known["options"].items()}
            if "signature" in known:
                known["signature"] = signatures.of_document(known["signature"])
            return cls(**known)
        except BundleError:
            raise
        except (TypeError, ValueError) as e:
            raise BundleError(f"the manifest makes no sense: {e}") from None


_KINDS: dict[str, type] = {
    "runtime": str,
    "entry": str,
    "python": str,
    "requirements": list,
    "input_type": str,
    "input_length": int,
    "description": str,
    "options": dict,
    "command": list,
    "signature": dict,
}


@dataclass(frozen=True)
class Bundle:
    manifest: Manifest
    files: Mapping[str, bytes] = field(repr=False)  # by their names with /
    data: bytes = field(repr=False)  # of the archive

    @property
    def digest(self) -> str:
        return "sha256:" + hashlib.sha256(self.data).hexdigest()

    def unpack(self, folder: Path) -> None:
        """Writes everything into a folder, as Topsail does before it starts the runtime."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (folder / MANIFEST).write_bytes(_manifest(self.manifest, self.files))


def build(manifest: Manifest, files: Mapping[str, bytes]) -> Bundle:
    """The bundle with these files, by their names with `/`. It raises BundleError."""
    for name in files:
        _check_name(name)
    _check_entry(manifest, files)
    members = dict(files) | {MANIFEST: _manifest(manifest, files)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members):
            archive.writestr(_entry(name), members[name], zipfile.ZIP_DEFLATED, 6)
    return Bundle(manifest, dict(files), buffer.getvalue())


def read(data: bytes) -> Bundle:
    """A bundle from the bytes of its archive, with names, sizes and checksums verified. It raises BundleError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(archive, data)
    except BundleError:
        raise
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, OSError, ValueError, OverflowError) as e:
        raise BundleError(f"it is no zip archive that can be read: {e}") from None


def read_manifest(data: bytes) -> tuple[Manifest, dict[str, tuple[str, int]]]:
    """The manifest, and the checksum and size of every file. It raises BundleError."""
    try:
        members = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise BundleError(f"{MANIFEST} is not JSON: {e}") from None
    if not isinstance(members, dict):
        raise BundleError(f"{MANIFEST} is not valid JSON object")
    if members.get("format") != FORMAT:
        raise BundleError(
            f"the bundle has format {members.get('format')!r}, and this version of topsail reads {FORMAT}"
        )
    listed = members.get("files")
    if not isinstance(listed, dict):
        raise BundleError(f"{MANIFEST} lists no files")
    return Manifest.of_members(members), {name: _listed(name, file) for name, file in listed.items()}


def check_requirement(requirement: str) -> None:
    """A requirement is a name with versions. Options of pip, addresses and paths could bring in anything at all."""
    if len(requirement) > 256 or not _REQUIREMENT.fullmatch(requirement):
        raise BundleError(
            f"{requirement!r} is no requirement that a bundle may have: write a name with versions, "
            "like scikit-learn==1.5.2"
        )


def _check_input_type(name: str) -> None:
    try:
        input_type.parse(name)
    except ValueError as e:
        raise BundleError(str(e)) from None


def _check_name(name: str) -> None:
    parts = name.split("/")
    odd = not name.isprintable() or "\\" in name or ":" in name or len(name.encode(errors="replace")) > 255
    if odd or name == MANIFEST or any(part in ("", ".", "..") for part in parts):
        raise BundleError(f"{name!r} cannot name a file of a bundle: use relative names with /")


def _check_entry(manifest: Manifest, files: Mapping[str, object]) -> None:
    entry = manifest.entry
    folder = any(name.startswith(entry.rstrip("/") + "/") for name in files) if entry else False
    if entry and ":" not in entry and entry not in files and not folder:
        raise BundleError(
            f"the entry {entry!r} is none of the bundle's files: {', '.join(sorted(files)[:10]) or 'none'}"
        )


def _manifest(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    listed = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in files.items()}
    try:
        text = json.dumps(
            {"format": FORMAT, "files": listed} | manifest.members(), sort_keys=True, indent=1, allow_nan=False
        )
    except (ValueError, TypeError) as e:
        raise BundleError(f"the manifest cannot be written as JSON: {e}") from None
    return text.encode()


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3  # Unix, so that the mode counts, whatever system this is
    info.external_attr = _MODE
    return info


def _read(archive: zipfile.ZipFile, data: bytes) -> Bundle:
    infos = {info.filename: info for info in archive.infolist()}
    if len(infos) != len(archive.infolist()):
        raise BundleError("a name is in the archive twice")
    if MANIFEST not in infos:
        raise BundleError(f"there is no {MANIFEST} in the archive")
    manifest, listed = read_manifest(_content(archive, infos.pop(MANIFEST), _MOST_MANIFEST))
    if infos.keys() != listed.keys():
        name = min(infos.keys() ^ listed.keys())
        raise BundleError(f"{name!r} is {'not listed in' if name in infos else 'missing, and listed in'} {MANIFEST}")
    if len(listed) > _MOST_FILES or sum(size for _, size in listed.values()) > _MOST_BYTES:
        raise BundleError(f"a bundle has at most {_MOST_FILES} files and {_MOST_BYTES} bytes")
    files = {name: _verified(archive, infos[name], *listed[name]) for name in listed}
    _check_entry(manifest, files)
    return Bundle(manifest, files, data)


def _verified(archive: zipfile.ZipFile, info: zipfile.ZipInfo, checksum: str, size: int) -> bytes:
    _check_name(info.filename)
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise BundleError(f"{info.filename!r} is no plain file")
    content = _content(archive, info, size)
    if len(content) != size or hashlib.sha256(content).hexdigest() != checksum:
        raise BundleError(f"{info.filename!r} is not what {MANIFEST} says: the bundle was changed or damaged")
    return content


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    """What the archive says of its own sizes does not count: a small one may unpack into anything."""
    with archive.open(info) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise BundleError(f"{info.filename!r} is larger than {most} bytes")
    return content


def _listed(name: str, file: Any) -> tuple[str, int]:
    size = file.get("size") if isinstance(file, dict) else None
    checksum = file.get("sha256") if isinstance(file, dict) else None
    if not isinstance(size, int) or isinstance(size, bool) or size < 0 or not isinstance(checksum, str):
        raise BundleError(f"{MANIFEST} has no checksum and size of {name!r}")
    return checksum, size


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
