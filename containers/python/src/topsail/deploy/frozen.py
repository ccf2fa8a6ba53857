"""A Python object as bytes, with what has to be there to read them: installed packages, and sources of one's own."""

from __future__ import annotations

import ast
import dis
import hashlib
import importlib.util
import io
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

from . import requirements
from .failure import DeployFailed

_MOST_SOURCES = 1000
_NEVER = frozenset({"__main__", "__mp_main__", "builtins", "topsail"})


@dataclass
class Frozen:
    data: bytes
    distributions: set[str] = field(default_factory=set)  # installed packages that it needs
    sources: dict[str, bytes] = field(default_factory=dict)  # of modules that no package has, by the name of the file


def freeze(thing: Any) -> Frozen:
    """Pickles a function or a model. What a notebook or script itself defines is pickled by its code, which takes
    cloudpickle; what comes from modules is named. It raises DeployFailed."""
    return looked_over(_by_name(thing) or _by_code(thing))


def looked_over(data: bytes) -> Frozen:
    """What was pickled before is read back to see what it needs. It raises DeployFailed."""
    reader = _read(data)
    return with_modules(Frozen(_with_lasting_ids(data, reader.class_ids)), reader.needed())


def with_modules(frozen: Frozen, modules: set[str]) -> Frozen:
    """Adds what modules need: their packages, or their sources and what those import."""
    seen: set[str] = set()
    while modules := {m.partition(".")[0] for m in modules} - seen - sys.stdlib_module_names - _NEVER:
        seen |= modules
        imported: set[str] = set()
        for module in sorted(modules):
            if distribution := requirements.of_module(module):
                frozen.distributions.add(distribution)
                continue
            sources = _sources(module)
            frozen.sources |= sources
            imported |= {name for text in sources.values() for name in _imports(text)}
        modules = {m for m in imported if _is_there(m)}
    return frozen


def _by_name(thing: Any) -> bytes | None:
    """Pickled without cloudpickle; None where that cannot be, or where something is only in this program."""
    try:
        data = pickle.dumps(thing, protocol=5)
        return None if _read(data).needed() & {"__main__", "__mp_main__"} else data
    except Exception:  # a class may raise anything when it is pickled; cloudpickle will say it again
        return None


def _by_code(thing: Any) -> bytes:
    try:
        cloudpickle = import_module("cloudpickle")
    except ModuleNotFoundError:
        raise DeployFailed(
            "the function is defined in a notebook or script, and packing its code needs cloudpickle: "
            "pip install cloudpickle"
        ) from None
    try:
        data: bytes = cloudpickle.dumps(thing, protocol=5)
    except Exception as e:
        raise DeployFailed(
            f"it cannot be packed: {type(e).__name__}: {e}. Open files, locks, connections and the like cannot travel: "
            "make them where they are used, or in a class with setup(self)"
        ) from e
    return data


def _read(data: bytes) -> _Reader:
    reader = _Reader(io.BytesIO(data))
    try:
        reader.load()
    except Exception as e:
        raise DeployFailed(f"what was packed cannot be read back: {type(e).__name__}: {e}") from e
    return reader


def _with_lasting_ids(data: bytes, ids: list[str]) -> bytes:
    """cloudpickle gives a class a new random id each time that its definition runs. In their place come ids by the
    content, so that the same model makes the same bundle."""
    content = data
    for i, id in enumerate(ids):
        content = content.replace(id.encode(), f"class {i}".encode())
    for i, id in enumerate(ids):
        lasting = hashlib.sha256(content + f"class {i}".encode()).hexdigest()[: len(id)]
        data = data.replace(id.encode(), lasting.encode())
    return data


# Which argument of cloudpickle's functions that make classes is the id of the class.
_CLASS_ID = {"_make_skeleton_class": 4, "_make_skeleton_enum": 5, "_make_typevar": 5}


class _Reader(pickle.Unpickler):
    """Reads a pickle, and notes the modules that it names and the code in it. cloudpickle names modules and makes code
    by functions of its own, which are looked over here."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.modules: set[str] = set()
        self.codes: list[CodeType] = []
        self.class_ids: list[str] = []

    def needed(self) -> set[str]:
        """The modules that it names, and that its code imports."""
        return self.modules | {name for code in self.codes for name in _imported_by(code) if _is_there(name)}

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if module in sys.modules:  # as those of Python 2 are not, by which old protocols call the standard library
            self.modules.add(module)
        if module.partition(".")[0] == "cloudpickle" and name == "subimport":
            return self._noting_module(found)
        if module.partition(".")[0] == "cloudpickle" and name == "_builtin_type":
            return self._noting_code(found)
        if module.partition(".")[0] == "cloudpickle" and name in _CLASS_ID:
            return self._noting_class(found, _CLASS_ID[name])
        return found

    def _noting_class(self, found: Any, at: int) -> Any:
        def make_class(*arguments: Any) -> Any:
            if id := arguments[at]:
                self.class_ids.append(id)
            # Without its id it is a class of its own: what is read would else be written into the one here.
            return found(*arguments[:at], None, *arguments[at + 1 :])

        return make_class

    def _noting_module(self, found: Any) -> Any:
        def subimport(name: str) -> Any:
            self.modules.add(name)
            return found(name)

        return subimport

    def _noting_code(self, found: Any) -> Any:
        def builtin_type(name: str) -> Any:
            return self._code if name == "CodeType" else found(name)

        return builtin_type

    def _code(self, *arguments: Any) -> CodeType:
        code = CodeType(*arguments)
        self.codes.append(code)
        return code


def _imported_by(code: CodeType) -> set[str]:
    """What the code imports when it runs."""
    return {i.argval for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME" and i.argval}


def _imports(source: bytes) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module


def _is_there(module: str) -> bool:
    """A module that is not installed here is imported by code that does without it."""
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _sources(module: str) -> dict[str, bytes]:
    """The source of a module or of everything in a package, by file name. It raises DeployFailed."""
    spec = importlib.util.find_spec(module)
    if spec and spec.submodule_search_locations:
        folder = Path(next(iter(spec.submodule_search_locations)))
        files = {f"{module}/{p.relative_to(folder).as_posix()}": p for p in sorted(folder.rglob("*.py"))}
    else:
        files = {f"{module}.py": Path(spec.origin)} if spec and spec.origin and spec.origin.endswith(".py") else {}
    if not files or len(files) > _MOST_SOURCES:
        raise DeployFailed(
            f"the model uses the module {module!r}, which belongs to no installed package and has no source that could "
            "be packed: install it as a package, or put what is used into the notebook"
        )
    return {name: path.read_bytes() for name, path in files.items()}
