"""Writes src/topsail/client/admin/record.py, the records of the management client, from the document of its API.

A record has the required members by position, in the document's order, and the others by keyword, so that a new one
moves none. What is required and read-only has an empty default: who makes a record does not say it.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import yaml

PACKAGE = Path(__file__).parents[1]
DOCUMENT = PACKAGE.parents[1] / "web" / "api" / "openapi.yaml"
WRITTEN = PACKAGE / "src" / "topsail" / "client" / "admin" / "record.py"

# The schemas that the client gives as objects; others are Said.
RECORDS = (
    "DryRun",
    "App",
    "Model",
    "Version",
    "Replica",
    "Artifact",
    "Stream",
    "Key",
    "Decision",
    "AuditEntry",
    "ModelChange",
    "Usage",
    "VersionStages",
)
# Members that no attribute can be named after, or should be: a property reads them.
RENAMED = {
    "Decision": {"from": "before", "to": "after"},
    "AuditEntry": {"from": "address"},
    "ModelChange": {"from": "address"},
}

HEAD = '''"""What the management service says of things, as objects with attributes."""

# Written by tools/records.py from web/api/openapi.yaml: change that, and run `make generate`.

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from .base import Record, Said
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
EMPTY = {"str": '""', "int": "0", "float": "0.0", "bool": "False"}


def written() -> str:
    """The text of the module, as ruff formats it."""
    schemas = yaml.safe_load(DOCUMENT.read_text())["components"]["schemas"]
    exported = "\n".join(f'    "{name}",' for name in sorted([*RECORDS, "Record", "Said"]))
    classes = [Class(name, schemas).text() for name in RECORDS]
    text = "\n\n".join([f"{HEAD}\n__all__ = [\n{exported}\n]\n", *classes])
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(WRITTEN), "-"]
    return subprocess.run(ruff, input=text, cwd=PACKAGE, stdout=subprocess.PIPE, text=True, check=True).stdout


class Class:
    """A record as Python has it."""

    def __init__(self, name: str, schemas: dict[str, Any]) -> None:
        self._name, self._schemas = name, schemas
        said = self._whole(schemas[name])
        self._doc, self._required = said["description"], set(said["required"])
        self._members = {k: self._whole(v) for k, v in said["properties"].items()}
        self._renamed = RENAMED.get(name, {})

    def text(self) -> str:
        own = [name for name in self._members if name not in self._renamed]
        first = [name for name in own if name in self._required and self._default(name) is None]
        then = [name for name in own if name not in first]
        lines = ["@dataclass(repr=False)", f"class {self._name}(Record):", _docstring(self._doc)]
        lines += self._names("read_only", [k for k, said in self._members.items() if said.get("readOnly")])
        lines += self._names("hidden", [k for k, said in self._members.items() if said.get("format") == "password"])
        lines += ["", *map(self._field, first)]
        lines += ["", "    _: KW_ONLY", *map(self._field, then)] if then else []
        lines += [self._property(name, attribute) for name, attribute in self._renamed.items()]
        return "\n".join(lines) + "\n"

    def _names(self, attribute: str, names: list[str]) -> list[str]:
        text = ", ".join(f'"{name}"' for name in names)
        return [f"    {attribute}: ClassVar[frozenset[str]] = frozenset({{{text}}})"] if names else []

    def _field(self, name: str) -> str:
        default = self._default(name)
        line = f"    {name}: {self._type_of(name)}" + ("" if default is None else f" = {default}")
        comment = ": ".join(filter(None, (self._shape(self._members[name]), self._members[name].get("description"))))
        if comment and len(line) + len(comment) + 4 > 120:
            return textwrap.fill(comment, 120, initial_indent="    # ", subsequent_indent="    # ") + "\n" + line
        return f"{line}  # {comment}" if comment else line

    def _property(self, name: str, attribute: str) -> str:
        said = self._members[name]
        kind = self._type(said)
        value = f'self.more["{name}"]' if name in self._required else f'self.more.get("{name}", {EMPTY[kind]})'
        doc = said["description"][0].upper() + said["description"][1:] + "."
        body = f"{_docstring(doc, 8)}\n        return {kind}({value})"
        return f"\n    @property\n    def {attribute}(self) -> {kind}:\n{body}"

    def _type_of(self, name: str) -> str:
        return self._type(self._members[name]) + ("" if name in self._required else " | None")

    def _default(self, name: str) -> str | None:
        said = self._members[name]
        if name not in self._required:
            return "None"
        if "const" in said:
            return repr(said["const"])
        if not said.get("readOnly"):
            return None
        kind = self._type(said)
        return EMPTY.get(kind) or f"field(default_factory={kind.partition('[')[0]})"

    def _type(self, schema: Any) -> str:
        said = self._whole(schema)
        kind, values = said.get("type"), said.get("additionalProperties")
        if kind == "array":
            return f"list[{self._type(said['items'])}]"
        if kind == "object":
            return f"dict[str, {self._type(values) if isinstance(values, dict) else 'Any'}]"
        return "Any" if kind is None else SCALARS[kind]

    def _shape(self, schema: Any) -> str:
        """The words that a string can be, or the members of an object."""
        said = self._whole(schema)
        if "enum" in said:
            *others, last = [str(word) for word in said["enum"] if word != ""]
            return f"{', '.join(others)} or {last}" if others else last
        if said.get("type") == "array":
            return self._shape(said["items"])
        return "{" + ", ".join(said["properties"]) + "}" if said.get("properties") else ""

    def _whole(self, schema: Any) -> Any:
        """A schema with what it refers to and the parts that it is made of."""
        if "$ref" in schema:
            return self._whole(self._schemas[schema["$ref"].rpartition("/")[2]]) | schema
        if "allOf" not in schema:
            return {"properties": {}, "required": []} | schema
        parts = [self._whole(part) for part in schema["allOf"]]
        properties = {k: v for part in parts for k, v in part["properties"].items()}
        required = [name for part in parts for name in part["required"]]
        return {"type": "object"} | schema | {"properties": properties, "required": required}


def _docstring(text: str, indent: int = 4) -> str:
    space = " " * indent
    return textwrap.fill(f'"""{text.strip()}"""', 120, initial_indent=space, subsequent_indent=space)


if __name__ == "__main__":
    WRITTEN.write_text(written())
