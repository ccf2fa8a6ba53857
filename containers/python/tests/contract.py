"""The management API's own document, as far as a fake has to keep to it."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

DOCUMENT = Path(__file__).parents[3] / "web" / "api" / "openapi.yaml"
_TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


class Operation(NamedTuple):
    name: str
    names: list[str]  # in the path
    query: dict[str, str]
    body: dict[str, Any] | None  # schema


class Breach(Exception):
    """A request that the document does not allow."""


@functools.cache
def document() -> Any:
    return yaml.safe_load(DOCUMENT.read_text())


def operation(method: str, url: str, headers: Any) -> Operation:
    """What a request asks for. It raises Breach."""
    parts = urlsplit(url)
    for template, item in document()["paths"].items():
        pattern = "/api/v1" + re.sub(r"\\{\w+\\}", "([^/]+)", re.escape(template))
        match = re.fullmatch(pattern, parts.path)
        if match and method.lower() in item:
            said = item[method.lower()]
            query = {k: v[-1] for k, v in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
            _check_parameters(query, headers, item.get("parameters", []) + said.get("parameters", []))
            return Operation(said["operationId"], [unquote(g) for g in match.groups()], query, _body(said, headers))
    raise Breach(f"the document has no {method} {parts.path}")


def check(value: Any, schema: Any, where: str = "body") -> None:
    """A little of JSON Schema. It raises Breach."""
    schema = _resolved(schema)
    kind = schema.get("type")
    if isinstance(kind, str) and (
        not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool))
    ):
        raise Breach(f"{where} is {value!r}, and not of type {kind}")
    if "enum" in schema and value not in schema["enum"]:
        raise Breach(f"{where} is {value!r}, and not one of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        raise Breach(f"{where} is {value!r}, below {schema['minimum']}")
    if isinstance(value, list):
        for place, item in enumerate(value):
            check(item, schema.get("items", {}), f"{where}[{place}]")
    if isinstance(value, dict):
        _check_members(value, schema, where)


def _check_members(value: dict[str, Any], schema: Any, where: str) -> None:
    members, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if missing := set(schema.get("required", [])) - value.keys():
        raise Breach(f"{where} has no {min(missing)}")
    for name, item in value.items():
        if name in members:
            check(item, members[name], f"{where}.{name}")
            if _resolved(members[name]).get("readOnly") or members[name].get("readOnly"):
                raise Breach(f"{where}.{name} is read-only")
        elif others is False:
            raise Breach(f"{where} may have no {name}")


def _check_parameters(query: dict[str, str], headers: Any, parameters: list[Any]) -> None:
    known = [_resolved(p) for p in parameters]
    if unknown := query.keys() - {p["name"] for p in known if p["in"] == "query"}:
        raise Breach(f"there is no parameter {min(unknown)!r}")
    if headers.get("If-Match") and "If-Match" not in {p["name"] for p in known if p["in"] == "header"}:
        raise Breach("this takes no If-Match")


def _body(said: Any, headers: Any) -> dict[str, Any] | None:
    if "requestBody" not in said:
        return None
    content = said["requestBody"]["content"]
    kind = headers.get("Content-Type")
    if kind is None and not said["requestBody"].get("required"):
        return None
    if kind not in content:
        raise Breach(f"a body of {kind} is not among {list(content)}")
    return content[kind]["schema"]


def _resolved(node: Any) -> Any:
    while "$ref" in node:
        found: Any = document()
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node
