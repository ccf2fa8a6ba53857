"""The GPUs that Nomad has given to this process, against those that it would use."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from .settings import SettingsError

_GIVEN, _VISIBLE = "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
_LINE = re.compile(r"^(\s*).*\(UUID: *([^)\s]+)\)")  # of nvidia-smi -L: a slice of MIG stands indented below its GPU
_WITHIN = 20.0  # seconds for nvidia-smi, which may have to wake the driver


def check(environ: Mapping[str, str]) -> None:
    """It raises SettingsError where the process would use a GPU that it was not given, or lacks one that it was. Where
    none was given by name there is nothing to check."""
    given = {d for d in _split(environ.get(_GIVEN, "")) if d.startswith(("GPU-", "MIG-"))}
    if not given:
        return
    gpus, usable = _listed(environ)
    named = environ.get(_VISIBLE)
    if named is not None:
        usable = {uuid for one in _split(named) for uuid in _meant(one, gpus, usable)}
    if missing := given - usable:
        raise SettingsError(
            f"this replica was given the GPU {_list(missing)}, and sees {_list(usable) or 'none'} "
            f"({_VISIBLE}={'' if named is None else named}): leave {_VISIBLE} to Topsail, and look whether the driver "
            "on the node still has that GPU (nvidia-smi -L)"
        )
    if others := usable - given:
        raise SettingsError(
            f"this replica was given the GPU {_list(given)}, and would use {_list(others)} of other replicas, too: "
            f"leave {_VISIBLE} to Topsail, or run it with the driver docker"
        )


def _listed(environ: Mapping[str, str]) -> tuple[list[str], set[str]]:
    """The GPUs that the driver lists, and those of them that CUDA can use, which are slices where there are any."""
    try:
        run = subprocess.run(
            ["nvidia-smi", "-L"], env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN
        )
    except FileNotFoundError:
        raise SettingsError(
            "this replica was given a GPU, and there is no nvidia-smi to see it by: install NVIDIA's driver on the "
            "node, and in docker give the container the driver capability utility (NVIDIA_DRIVER_CAPABILITIES)"
        ) from None
    except subprocess.TimeoutExpired:
        raise SettingsError(
            f"nvidia-smi -L says nothing for {_WITHIN:g} s: look after the driver of the node"
        ) from None
    text = run.stdout.decode(errors="replace")
    if run.returncode != 0:
        why = (run.stderr.decode(errors="replace").strip() or text.strip()).partition("\n")[0]
        raise SettingsError(f"this replica was given a GPU, and nvidia-smi -L fails: {why}")
    gpus: list[str] = []
    usable: list[str] = []
    for line in filter(None, map(_LINE.match, text.splitlines())):
        indent, uuid = line.groups()
        if indent and usable and usable[-1] == gpus[-1]:
            usable.pop()  # it is sliced
        elif not indent:
            gpus.append(uuid)
        usable.append(uuid)
    return gpus, set(usable)


def _meant(name: str, gpus: list[str], usable: set[str]) -> set[str]:
    """What CUDA takes a name for: a number, or the beginning of a UUID."""
    if name.isdecimal():
        return set(gpus[int(name) : int(name) + 1])
    return {uuid for uuid in usable if uuid.startswith(name)}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _list(uuids: set[str]) -> str:
    return ", ".join(sorted(uuids))
