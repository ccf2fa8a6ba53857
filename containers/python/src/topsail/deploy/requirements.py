"""What a bundle requires, from what is installed here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata

from .failure import DeployFailed


def of_module(module: str) -> set[str]:
    """The distributions that have a module and that others can install: one, but where several share a namespace of
    which no more is said. Empty for what is only here: a source beside the notebook, a package that is being worked on,
    or one that came from a URL, by whose name an index may have something else."""
    return {name for name in _having(module) if _origin(name) is None}


def is_shared(package: str) -> bool:
    """Whether several distributions have modules in a package."""
    return len(_having(package)) > 1


def installed_from(module: str) -> str:
    """The URL that a module was installed from; empty for an index and for what is not installed."""
    return next((url for name in _having(module) if (url := _origin(name))), "")


def pinned(distributions: Iterable[str], given: Sequence[str] = (), cuda: bool = False) -> tuple[str, ...]:
    """The versions that are installed here; what is given counts instead, by its name. With `cuda` they are those for
    GPUs where the ones here may be for the CPU alone. It raises DeployFailed."""
    pins = [_pin(name, cuda) for name in distributions]
    chosen = {_key(r): r for r in pins} | {_key(r): r for r in given}
    return tuple(chosen[key] for key in sorted(chosen))


def need(distribution: str, why: str) -> str:
    """The distribution, if it is installed. It raises DeployFailed."""
    if not is_installed(distribution):
        raise DeployFailed(f"{why} needs {distribution} here, too: pip install {distribution}")
    return distribution


def is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


# How an index has the same for GPUs, with the libraries of CUDA. It does not have each version of onnxruntime so.
_FOR_CUDA = {
    "onnxruntime": "onnxruntime-gpu[cuda,cudnn]<=",
    "onnxruntime-gpu": "onnxruntime-gpu[cuda,cudnn]==",
    "tensorflow": "tensorflow[and-cuda]==",
    "tensorflow-cpu": "tensorflow[and-cuda]==",
}


def _pin(name: str, cuda: bool) -> str:
    """Without what follows a plus: 2.6.0+cpu is a build of 2.6.0 that only some indexes have."""
    wanted = _FOR_CUDA.get(_key(name), f"{name}==") if cuda else f"{name}=="
    return f"{wanted}{metadata.version(need(name, 'the model')).partition('+')[0]}"


def _key(requirement: str) -> str:
    """A name as pip compares it."""
    name = re.split(r"[\s\[<>=!~;@]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def _having(module: str) -> list[str]:
    """The distributions that have a module. Of several with its outermost package those that have the most of its name:
    google.auth is in one of many."""
    found = _distributions().get(module.partition(".")[0], [])
    parts = module.split(".")
    while len(found) > 1 and len(parts) > 1:
        inside = "/".join(parts)
        if having := [name for name in found if _has(name, inside)]:
            return having
        parts.pop()
    return found


def _has(distribution: str, inside: str) -> bool:
    """Whether files of it are the module or in the package, whose name is written with `/`."""
    files = metadata.distribution(distribution).files or []
    return any(f.as_posix().startswith((f"{inside}/", f"{inside}.")) for f in files)


@cache
def _distributions() -> Mapping[str, list[str]]:
    """The distributions that have a module, by its name. Python 3.10 knows only those that list their modules."""
    found: dict[str, list[str]] = {}
    for distribution in metadata.distributions():
        for module in _modules(distribution):
            found.setdefault(module, []).append(distribution.metadata["Name"])
    return found


def _modules(distribution: metadata.Distribution) -> set[str]:
    if listed := distribution.read_text("top_level.txt"):
        return set(listed.split())
    files = [f for f in distribution.files or [] if f.suffix in (".py", ".so", ".pyd")]
    return {f.parts[0].partition(".")[0] for f in files}


def _origin(distribution: str) -> str | None:
    """The URL of a folder, file, archive or repository that it was installed from (PEP 610); None for an index. Conda
    writes where it was built."""
    found = metadata.distribution(distribution)
    if (found.read_text("INSTALLER") or "").strip() == "conda":
        return None
    try:
        return str(json.loads(found.read_text("direct_url.json") or "null")["url"])
    except (ValueError, TypeError, KeyError):
        return None
