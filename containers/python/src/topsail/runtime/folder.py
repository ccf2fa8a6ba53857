"""An unpacked bundle."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

from ..bundle import MANIFEST, PYTHON, BundleError, Manifest, read_manifest
from ..container import signature
from ..container.signature import Signature
from ..protocol.constants import MAX_INPUTS
from .failure import PermanentFailure


class Folder:
    """The folder of a bundle with its manifest. Its files were verified when it was unpacked."""

    def __init__(self, path: Path, trial: bool = False) -> None:
        """It raises PermanentFailure where there is no manifest that makes sense. A trial is content with the CPU,
        because who deploys a model seldom has the GPU that it will run on."""
        self.path, self._trial = path, trial
        self.on_cpu_instead = False  # of the GPU that the model is for
        try:
            self.manifest: Manifest = read_manifest((path / MANIFEST).read_bytes())[0]
        except OSError as e:
            raise PermanentFailure(f"{path} is no unpacked bundle: {MANIFEST}: {e.strerror}") from None
        except BundleError as e:
            raise PermanentFailure(str(e)) from None
        self.signature: Signature | None = self.manifest.signature

    def take_signature(self, text: str) -> None:
        """That of the version, as JSON, which may say more than the bundle. It raises PermanentFailure."""
        try:
            self.signature = signature.parse(text) if text else self.signature
        except ValueError as e:
            raise PermanentFailure(str(e)) from None

    @property
    def named(self) -> Signature | None:
        """The signature of a model whose inputs have names; None for one that takes a vector or a text."""
        return self.signature if self.signature and self.signature.inputs else None

    def check_python(self) -> None:
        """It raises PermanentFailure where another Python than this one is asked for."""
        if self.manifest.python and self.manifest.python != PYTHON:
            raise PermanentFailure(
                f"the bundle was made with Python {self.manifest.python}, and this is Python {PYTHON}: what one Python "
                f"has pickled another cannot read. Deploy it again from Python {PYTHON}, or run it where Python "
                f"{self.manifest.python} is installed"
            )

    def entry(self, ending: str = "") -> Path:
        """The file or folder that the manifest names as the model. It raises PermanentFailure."""
        name = self.manifest.entry
        path = self.path / name
        if not name or not path.exists():
            have = ", ".join(sorted(p.name for p in self.path.iterdir() if p.name != MANIFEST)) or "nothing"
            raise PermanentFailure(f"the entry {name!r} of the manifest is not in the bundle, which has {have}")
        if ending and not name.endswith(ending):
            raise PermanentFailure(
                f"the runtime {self.manifest.runtime!r} runs a file {ending}, and the entry is {name!r}"
            )
        return path

    def option(self, name: str, default: str, choices: tuple[str, ...] = ()) -> str:
        """An option of the manifest. It raises PermanentFailure for what is none of the choices."""
        value = self.manifest.options.get(name, default)
        if choices and value not in choices:
            raise PermanentFailure(f"the option {name} = {value!r} is unknown: use {', '.join(choices)}")
        return value

    def device(self, found: bool, library: str, problem: str = "") -> str:
        """The option `device`: cpu, cuda, or auto for cuda where it is `found`. It raises PermanentFailure for a GPU
        that is not there, with the library's problem where there is another one than that."""
        wanted = self.option("device", "cpu", ("cpu", "cuda", "auto"))
        if wanted == "cpu" or found:
            return "cpu" if wanted == "cpu" else "cuda"
        if wanted == "cuda" and not self._trial:
            problem = problem or "finds no GPU here: use a node with one"
            raise PermanentFailure(
                f"the option device is cuda, and {library} {problem}; device=auto goes on with the CPU"
            )
        self.on_cpu_instead = wanted == "cuda"
        return "cpu"

    def number(self, name: str, default: float) -> float:
        """An option that is a number. It raises PermanentFailure."""
        text = self.option(name, repr(default))
        try:
            return float(text)
        except ValueError:
            raise PermanentFailure(f"the option {name} = {text!r} is no number") from None

    def lists(self, name: str) -> dict[str, list[Any]]:
        """An option that is lists by their names, in JSON; empty without. It raises PermanentFailure."""
        text = self.option(name, "{}")
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(x, list) for x in found.values()):
            raise PermanentFailure(f"the option {name} = {text!r} is no object of lists in JSON")
        return found

    def batch(self) -> int:
        """The option `batch`: how many inputs the model takes at once, no more and no less, as the version's batches
        are filled up; 1 without, for any number. It raises PermanentFailure."""
        text = self.option("batch", "1")
        if not text.isdecimal() or not 0 < int(text) <= MAX_INPUTS:
            raise PermanentFailure(f"the option batch = {text!r} is no number of inputs")
        return int(text)

    def threads(self) -> int:
        """The option `threads`: for one batch, 1 without; 0 is as many as the library likes. It raises
        PermanentFailure."""
        text = self.option("threads", "1")
        if not text.isdecimal() or int(text) > 1024:
            raise PermanentFailure(f"the option threads = {text!r} is no number of threads")
        return int(text)

    def shape(self) -> tuple[int, ...]:
        """The option `shape`, of one input; empty without. It raises PermanentFailure."""
        text = self.option("shape", "")
        parts = text.split(",") if text else []
        if not all(p.strip().isdecimal() for p in parts):
            raise PermanentFailure(f"the option shape = {text!r} is none: write numbers with commas, like 3,224,224")
        return tuple(map(int, parts))

    def example(self) -> Any:
        """The manifest's example as predict's caller would give it; None if there is none."""
        return decoded(self.manifest.example, self.manifest.input_type, self.named)


def decoded(example: Any, input_type: str, named: Signature | None = None) -> Any:
    """An input as JSON has it, where bytes are base64, as the SDK takes it. It raises PermanentFailure."""
    if named and isinstance(example, dict):
        blobs = {t.name for t in named.inputs if t.type == "bytes"}
        return {name: _octets(x) if name in blobs else x for name, x in example.items()}
    if input_type not in ("bytes", "byte", "b") or not isinstance(example, str):
        return example
    return _octets(example)


def _octets(x: Any) -> Any:
    """Bytes from base64, nested as the texts are."""
    if isinstance(x, list):
        return list(map(_octets, x))
    try:
        return b64decode(x, validate=True)
    except (TypeError, ValueError) as e:
        raise PermanentFailure(f"the example of the manifest is no base64: {e}") from None
