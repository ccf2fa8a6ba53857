"""The signature that a PMML model states itself: its active fields, and its target with the fields of its Output.

Inputs and outputs have the names by which the evaluator in `containers/jvm` knows them, each one scalar.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import ParseError, XMLParser

from ..container.signature import Signature, Tensor
from .failure import DeployFailed

_MOST_BYTES = 128 << 20  # as the evaluator reads
_MOST_NESTED = 512  # elements
_MOST_TENSORS = 64  # of a signature
_NOT_MODELS = frozenset(("Header", "MiningBuildTask", "DataDictionary", "TransformationDictionary", "Extension"))
_TYPES = {"integer": "int64", "float": "float32", "double": "float64", "boolean": "bool", "string": "string"}
_OTHERS = "float64"  # such as dates, which are numbers to the evaluator
_TEXTS = frozenset(("predictedDisplayValue", "entityId", "clusterId", "reasonCode", "ruleValue", "warning"))


def read(pmml: bytes) -> Signature:
    """The signature of the first model of a document. Without a target and an Output it has no outputs: then they are
    not checked. It raises DeployFailed."""
    if len(pmml) > _MOST_BYTES:
        raise DeployFailed(f"the PMML file has more than {_MOST_BYTES >> 20} MiB: give a smaller model")
    document = _Document()
    parser = XMLParser(target=document)
    try:
        parser.feed(pmml)
        parser.close()
    except (ParseError, LookupError, ValueError) as e:  # an encoding that Python does not know is a LookupError
        raise DeployFailed(f"the PMML file is not XML that can be read ({e}): export the model again") from None
    return document.signature()


class _Document:
    """Picks the fields out of a document while it is parsed; a tree of a forest would take gigabytes."""

    def __init__(self) -> None:
        self._path: list[str] = []  # names of the open elements
        self._models = 0
        self._function = ""
        self._types: dict[str, str] = {}  # PMML's, of the DataDictionary
        self._active: list[str] = []
        self._targets: list[str] = []
        self._outputs: list[Mapping[str, str]] = []

    def doctype(self, *_: object) -> None:
        raise DeployFailed(
            "the PMML file has a document type, which could fetch files and grow without bound: take it out"
        )

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        self._path.append(name)
        depth = len(self._path)
        if depth == 1 and name != "PMML":
            raise DeployFailed(f"the file is not PMML: its first element is {name}")
        if depth > _MOST_NESTED:
            raise DeployFailed(f"the PMML file has elements nested more than {_MOST_NESTED} deep: give a smaller model")
        if depth == 2 and name not in _NOT_MODELS:
            self._models += 1
            if self._models == 1:
                self._function = attributes.get("functionName", "")
        elif depth == 3 and self._path[1:] == ["DataDictionary", "DataField"]:
            self._types[attributes.get("name", "")] = attributes.get("dataType", "")
        elif depth == 4 and self._models == 1 and self._path[1] not in _NOT_MODELS:
            self._field(self._path[2:], attributes)

    def _field(self, path: list[str], attributes: Mapping[str, str]) -> None:
        """A field of the model itself, and not of a part of it."""
        if path == ["MiningSchema", "MiningField"]:
            usage = attributes.get("usageType", "active")
            if usage in ("target", "predicted"):  # the latter before PMML 4.2
                self._targets.append(attributes.get("name", ""))
            elif usage == "active":
                self._active.append(attributes.get("name", ""))
        elif path == ["Output", "OutputField"]:
            self._outputs.append(attributes)

    def end(self, tag: str) -> None:
        self._path.pop()

    def close(self) -> None:
        """For the parser."""

    def signature(self) -> Signature:
        if not self._active:
            raise DeployFailed(
                "the PMML file has no model with active fields in its MiningSchema: export the model again"
            )
        outputs = {o["name"]: self._output(o) for o in self._outputs if o.get("name")}
        if self._targets and self._targets[0] not in outputs:
            outputs = {self._targets[0]: self._predicted()} | outputs
        for fields, of in ((self._active, "active fields"), (list(outputs), "outputs")):
            if len(fields) > _MOST_TENSORS:
                raise DeployFailed(
                    f"the model has {len(fields)} {of}, and a signature at most {_MOST_TENSORS}: "
                    'give a list as the example, or input_type="strings"'
                )
        return Signature(
            tuple(Tensor(name, _TYPES.get(self._declared(name), _OTHERS)) for name in self._active),
            tuple(Tensor(name, type) for name, type in outputs.items()),
        )

    def _declared(self, name: str) -> str:
        if name not in self._types:
            raise DeployFailed(
                f"the field {name!r} of the MiningSchema is not in the DataDictionary: export the model again"
            )
        return self._types[name]

    def _predicted(self) -> str:
        """The type of what the model predicts, which a regression may put between two integers."""
        type = _TYPES.get(self._declared(self._targets[0]), "string")
        return "float64" if self._function == "regression" and type != "float32" else type

    def _output(self, field: Mapping[str, str]) -> str:
        feature = field.get("feature", "predictedValue")
        if feature == "predictedValue" and self._targets:
            return self._predicted()
        if "dataType" in field:
            return _TYPES.get(field["dataType"], "string")
        return "string" if feature in _TEXTS else "float64"
