"""An unpacked bundle."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

from ..bundle import MANIFEST, PYTHON, BundleError, Manifest, read_manifest
from .refusal import Refused


class Folder:
    """The folder of a bundle with its manifest. Whoever unpacked it has verified the files."""

    def __init__(self, path: Path, trial: bool = False) -> None:
        """It raises Refused where there is no manifest that makes sense. A trial is content with the CPU, because who
        deploys a model seldom has the GPU that it will run on."""
        self.path, self._trial = path, trial
        self.on_cpu_instead = False  # of the GPU that the model is for
        try:
            self.manifest: Manifest = read_manifest((path / MANIFEST).read_bytes())[0]
        except OSError as e:
            raise Refused(f"{path} is no unpacked bundle: {MANIFEST}: {e.strerror}") from None
        except BundleError as e:
            raise Refused(str(e)) from None

    def check_python(self) -> None:
        """It raises Refused where another Python than this one is asked for."""
        if self.manifest.python and self.manifest.python != PYTHON:
            raise Refused(
                f"the bundle was made with Python {self.manifest.python}, and this is Python {PYTHON}: what one Python "
                f"has pickled another cannot read. Deploy it again from Python {PYTHON}, or run it where Python "
                f"{self.manifest.python} is installed"
            )

    def entry(self, ending: str = "") -> Path:
        """The file or folder that the manifest names as the model. It raises Refused."""
        name = self.manifest.entry
        path = self.path / name
        if not name or not path.exists():
            have = ", ".join(sorted(p.name for p in self.path.iterdir() if p.name != MANIFEST)) or "nothing"
            raise Refused(f"the entry {name!r} of the manifest is not in the bundle, which has {have}")
        if ending and not name.endswith(ending):
            raise Refused(f"the runtime {self.manifest.runtime!r} runs a file {ending}, and the entry is {name!r}")
        return path

    def option(self, name: str, default: str, choices: tuple[str, ...] = ()) -> str:
        """An option of the manifest. It raises Refused for what is none of the choices."""
        value = self.manifest.options.get(name, default)
        if choices and value not in choices:
            raise Refused(f"the option {name} = {value!r} is unknown: use {', '.join(choices)}")
        return value

    def device(self, found: bool, library: str, problem: str = "") -> str:
        """The option `device`: cpu, cuda, or auto for cuda where it is `found`. It raises Refused for a GPU that is
        not there, with the library's problem where there is another one than that."""
        wanted = self.option("device", "cpu", ("cpu", "cuda", "auto"))
        if wanted == "cpu" or found:
            return "cpu" if wanted == "cpu" else "cuda"
        if wanted == "cuda" and not self._trial:
            problem = problem or "finds no GPU here: use a node with one"
            raise Refused(f"the option device is cuda, and {library} {problem}; device=auto goes on with the CPU")
        self.on_cpu_instead = wanted == "cuda"
        return "cpu"

    def number(self, name: str, default: float) -> float:
        """An option that is a number. It raises Refused."""
        text = self.option(name, repr(default))
        try:
            return float(text)
        except ValueError:
            raise Refused(f"the option {name} = {text!r} is no number") from None

    def threads(self) -> int:
        """The option `threads`: for one batch, 1 without; 0 is as many as the library likes. It raises Refused."""
        text = self.option("threads", "1")
        if not text.isdecimal() or int(text) > 1024:
            raise Refused(f"the option threads = {text!r} is no number of threads")
        return int(text)

    def shape(self) -> tuple[int, ...]:
        """The option `shape`, of one input; empty without. It raises Refused."""
        text = self.option("shape", "")
        parts = text.split(",") if text else []
        if not all(p.strip().isdecimal() for p in parts):
            raise Refused(f"the option shape = {text!r} is none: write numbers with commas, like 3,224,224")
        return tuple(map(int, parts))

    def example(self) -> Any:
        """The manifest's example as predict's caller would give it; None if there is none."""
        return decoded(self.manifest.example, self.manifest.input_type)


def decoded(example: Any, input_type: str) -> Any:
    """An input as JSON has it, where bytes are base64, as the SDK takes it. It raises Refused."""
    if input_type not in ("bytes", "byte", "b") or not isinstance(example, str):
        return example
    try:
        return b64decode(example, validate=True)
    except ValueError as e:
        raise Refused(f"the example of the manifest is no base64: {e}") from None
