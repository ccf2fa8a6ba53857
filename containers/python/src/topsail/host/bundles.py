"""Loads bundles, each as a process of its own would."""

from __future__ import annotations

import sys
from pathlib import Path

from ..bundle import ALONE
from ..container import input_type
from ..container.loading import WarmUpFailed, prepare, warm_up
from ..container.settings import SettingsError
from ..output import BadInput
from ..protocol.load import Load
from ..runtime import modules
from ..runtime.failure import PermanentFailure
from ..runtime.folder import Folder
from ..runtime.load import load
from .hosted_model import Loaded, name_of
from .installed import Installed

_MOST_SAID = 400  # characters


class Bundles:
    """The unpacked bundles below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._installed = Installed()
        self._kept = frozenset(sys.modules)  # what every container has imported before its model

    def place(self, asked: Load) -> Path:
        """The folder of the bundle. It raises PermanentFailure for one that is elsewhere."""
        try:
            place = (self._root / asked.folder).resolve()
        except (OSError, ValueError, RuntimeError) as e:  # a name too long or with a zero, and links in a circle
            raise PermanentFailure(f"the folder {asked.folder!r} cannot be a bundle's: {e}") from None
        if ".." in Path(asked.folder).parts or self._root not in place.parents:
            raise PermanentFailure(f"the folder {asked.folder!r} is not below that of the host's models")
        return place

    def load(self, asked: Load) -> Loaded:
        """The model, ready to answer at full speed. It raises PermanentFailure, or what the model's own code raises."""
        folder = Folder(self.place(asked))
        manifest = folder.manifest
        if manifest.runtime in ALONE:
            raise PermanentFailure(
                f"the runtime {manifest.runtime!r} needs a process of its own, and a host has one for all its models: "
                "give the model replicas of its own"
            )
        folder.check_python()
        self._installed.check(manifest.requirements)
        kind = input_type.of_code(asked.input_type)
        folder.take_signature(asked.signature)
        with modules.entered(folder.path, self._kept) as own:
            runner = prepare(
                load(folder),
                kind.name if kind else manifest.input_type or None,
                asked.input_length or manifest.input_length or None,
            )
        loaded = Loaded(name_of(asked), runner, own)
        try:
            warm_up(runner)  # outside, as it will be run
        except BaseException:
            loaded.close()
            raise
        return loaded


def is_clear(e: BaseException) -> bool:
    """Whether the exception says in its text what is wrong, so that operators do not need its traceback."""
    return isinstance(e, PermanentFailure | WarmUpFailed | BadInput | SettingsError)


def why_not(e: BaseException) -> str:
    """Why it could not be loaded, in a sentence for people."""
    if is_clear(e):
        return " ".join(str(e).split())
    said = str(e).strip().splitlines()
    last = f"{type(e).__name__}: {said[-1][:_MOST_SAID]}" if said else type(e).__name__
    return f"the model failed: {last}; its traceback is in the log of the host's replica"
