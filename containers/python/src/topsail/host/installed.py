"""What is installed here, against what a bundle requires: a host has one environment for all its models."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata

from ..optional import find
from ..runtime.failure import PermanentFailure

_packaging = find("packaging.requirements")  # without it, only what names one version is compared
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXACT = re.compile(r"==\s*([A-Za-z0-9.!_-]+)")  # without a star, and without what follows a plus


class Installed:
    """Remembers what it has looked up: an environment does not change under a process that runs in it."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}  # by requirement; empty where it is met

    def check(self, requirements: Iterable[str]) -> None:
        """It raises PermanentFailure with all that is missing."""
        problems = [p for r in requirements if (p := self._problem(r))]
        if problems:
            raise PermanentFailure(
                f"this host's environment does not have what the bundle requires: {'; '.join(problems)}. "
                "Install it there, build the bundle with what is installed there, or give the model replicas of its own"
            )

    def _problem(self, requirement: str) -> str:
        if requirement not in self._problems:
            self._problems[requirement] = _problem(requirement)
        return self._problems[requirement]


def _problem(requirement: str) -> str:
    return _plainly(requirement) if _packaging is None else _exactly(requirement)


def _exactly(requirement: str) -> str:
    """By the rules of pip."""
    wanted = _packaging.Requirement(requirement)
    if wanted.marker and not wanted.marker.evaluate():
        return ""
    have = _version(wanted.name)
    return "" if have and wanted.specifier.contains(have, prereleases=True) else _lacking(requirement, have)


def _plainly(requirement: str) -> str:
    """Whether it is there, and is the one version that may be named."""
    stated, marker, _ = requirement.partition(";")
    name = _NAME.match(stated)
    have = _version(name[0]) if name else ""
    exact = _EXACT.fullmatch(stated[name.end() :].strip()) if name else None
    met = have and (exact is None or exact[1] == have.partition("+")[0])
    return "" if met or (marker and not have) else _lacking(requirement, have)


def _version(name: str) -> str:
    """Of the distribution that is installed; empty if there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _lacking(requirement: str, have: str) -> str:
    return f"{requirement} ({f'there is {have}' if have else 'it is not there'})"
