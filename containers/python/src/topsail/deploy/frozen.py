"""A Python object as bytes, with what has to be there to read them: installed packages, and sources of one's own."""

from __future__ import annotations

import ast
import dis
import importlib.util
import io
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from . import requirements
from .failure import DeployFailed
from .lasting import lasting

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
    files = {code.co_filename for code in reader.codes}
    return with_modules(Frozen(lasting(data, reader.class_ids, files)), reader.needed())


def with_modules(frozen: Frozen, modules: set[str]) -> Frozen:
    """Adds what modules need: their packages, or their sources and what those import."""
    seen: set[str] = set()
    while modules := {m for m in modules - seen if _counts(m, modules)}:
        seen |= modules
        imported: set[str] = set()
        for module in sorted(modules):
            if distributions := requirements.of_module(module):
                frozen.distributions |= distributions
                continue
            spec, name = _packed(module)
            if name in seen and name != module:
                continue
            seen.add(name)
            sources = _sources(spec, name)
            frozen.sources |= sources
            imported |= {name for text in sources.values() for name in _imports(text)}
        modules = {m for m in imported if _is_there(m)}
    return frozen


def _counts(module: str, among: set[str]) -> bool:
    """Not so Python's own, and a namespace of several distributions of which more is said."""
    if module.partition(".")[0] in sys.stdlib_module_names | _NEVER:
        return False
    return not requirements.is_shared(module) or not any(m.startswith(f"{module}.") for m in among)


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
        if known := sys.modules.get(
            module
        ):  # those of Python 2 are not, by which old protocols call the standard library
            self.modules.add(_own_name(known, module))
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


def _own_name(module: ModuleType, name: str) -> str:
    """Compiled modules may be known by a short name, too, as _loss is for sklearn._loss._loss."""
    spec = getattr(module, "__spec__", None)
    return str(getattr(spec, "name", None) or getattr(module, "__name__", name))


def _imported_by(code: CodeType) -> Iterator[str]:
    """What the code imports when it runs."""
    package = ""
    for i in dis.get_instructions(code):
        if i.opname == "IMPORT_NAME" and i.argval:
            package = i.argval
            yield package
        elif i.opname == "IMPORT_FROM":
            yield from _below(package, i.argval)


def _imports(source: bytes) -> Iterator[str]:
    """What a source imports: nothing, if it is none for this Python, as a template or what is never imported may be."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module
            for alias in node.names:
                yield from _below(node.module, alias.name)


def _below(package: str, name: str) -> Iterator[str]:
    """What is imported from a package that several distributions share may be a module of one of them."""
    if requirements.is_shared(package):
        yield f"{package}.{name}"


def _is_there(module: str) -> bool:
    """A module that is not installed here is imported by code that does without it."""
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _sources(spec: ModuleSpec | None, name: str) -> dict[str, bytes]:
    """The source of a module's file or whole package, by file name. It raises DeployFailed."""
    files: dict[str, Path] = {}
    places = spec.submodule_search_locations if spec else None
    for folder in map(Path, places or ()):
        inside = name.replace(".", "/")
        files |= {f"{inside}/{p.relative_to(folder).as_posix()}": p for p in sorted(folder.rglob("*.py"))}
        if any(p.suffix in (".so", ".pyd") for p in folder.rglob("*")) and (url := requirements.installed_from(name)):
            raise DeployFailed(
                f"the model uses the package {name!r}, which was installed from {url} and has compiled parts: its "
                "source alone cannot go along, and an index may have something else by its name. Publish it on the "
                "index that environments are built from, and install it from there"
            )
    if not places and spec and spec.origin and spec.origin.endswith(".py"):
        files[f"{name.replace('.', '/')}.py"] = Path(spec.origin)
    if len(files) > _MOST_SOURCES:
        raise DeployFailed(
            f"the model uses the package {name!r}, which no index has, and which has {len(files)} files of source, "
            f"more than the {_MOST_SOURCES} that go along: put what is used into a package of its own"
        )
    if not files:
        raise DeployFailed(
            f"the model uses the module {name!r}, which belongs to no installed package and has no source that could "
            "be packed: install it as a package, or put what is used into the notebook"
        )
    return {name: path.read_bytes() for name, path in files.items()}


def _packed(module: str) -> tuple[ModuleSpec | None, str]:
    """The module or package whose source goes along for one of its modules, and its name: the outermost that is not
    only a namespace."""
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin or not spec.submodule_search_locations:
            return spec, name
    return spec, name
