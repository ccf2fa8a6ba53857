"""Whether a bundle answers as its model does where it is deployed from."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..output import Output, Scored
from .failure import DeployFailed

_MOST = 40  # rows that are compared
_RELATIVE, _ABSOLUTE = 1e-4, 1e-6  # what rounding may change: models compute in single precision, and batches differ

Ask = Callable[[Any], Any]  # the model here: from a table, as who deploys has it, to an output for each row


@dataclass(frozen=True)
class _Rows:
    table: Any  # as who deploys has it
    inputs: list[Any]  # the same as JSON has them
    given: bool  # as check, so that the model here has to take it; it need not take an example as that was given


@dataclass(frozen=True)
class Comparison:
    """What the model here and its bundle are both asked."""

    parts: list[_Rows]
    ask: Ask

    @property
    def inputs(self) -> list[Any]:
        return [x for part in self.parts for x in part.inputs]

    def check(self, said: Sequence[Mapping[str, Any]]) -> None:
        """Asks the model here, after its bundle has answered: it may be what ends a process. `said` is what the bundle
        makes of the inputs: an `output`, or an `error`. It raises DeployFailed for what is not the same."""
        for part in self.parts:
            theirs, said = said[: len(part.inputs)], said[len(part.inputs) :]
            try:
                own = _asked(self.ask, part.table)
            except Exception as e:
                if part.given:
                    raise DeployFailed(f"the model fails here on rows of check: {type(e).__name__}: {e}") from e
                continue
            if len(own) != len(theirs):
                raise DeployFailed(f"the model gives {len(own)} outputs here for {len(theirs)} inputs")
            self._compare(part, own, theirs)

    def _compare(self, part: _Rows, own: Sequence[Any], theirs: Sequence[Mapping[str, Any]]) -> None:
        for x, here, there in zip(part.inputs, own, theirs, strict=True):
            if "error" in there:
                raise DeployFailed(f"the model fails on {_short(x)}, a row of check: {there['error']}")
            if _same(here, _plain(there["output"])):
                continue
            if not _same(list(own), _asked(self.ask, part.table)):
                return  # it does not say the same twice
            raise DeployFailed(
                f"for {_short(x)} the model answers {_short(here)} here, and {_short(there['output'])} from its "
                "bundle, which gets what a query has: numbers of the example's type, in the order of its columns. "
                "check=False deploys it all the same"
            )


def compared(check: Any, example: Any, ask: Ask, read: Callable[[Any], Any]) -> Comparison | None:
    """Of the example, a table of one row or None, and of some rows of `check`, which is a table or list of inputs, or
    False for no comparison at all. `read` makes a row what JSON has, and raises DeployFailed."""
    if check is False:
        return None
    tables = [(example, False), (_some(check), True)]
    parts = [_Rows(table, list(map(read, _rows(table))), given) for table, given in tables if table is not None]
    return Comparison(parts, ask) if parts else None


def _asked(ask: Ask, table: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(map(_plain, ask(table)))


def _some(check: Any) -> Any:
    """Of a long table rows from all over it."""
    if check is None or check is True:
        return None
    count = len(check)
    chosen = [i * count // min(count, _MOST) for i in range(min(count, _MOST))]
    if hasattr(check, "iloc"):
        return check.iloc[chosen]
    return check[chosen] if hasattr(check, "dtype") else [check[i] for i in chosen]


def _rows(table: Any) -> list[Any]:
    if hasattr(table, "iloc"):
        return [table.iloc[i : i + 1] for i in range(len(table))]
    return list(table)


def _plain(x: Any) -> Any:
    """An output as clients get it."""
    if isinstance(x, (Output, Scored)):
        x = x.value
    if hasattr(x, "tolist"):
        x = x.tolist()
    if isinstance(x, Mapping):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return list(map(_plain, x))
    if not isinstance(x, str):
        return x
    try:
        return json.loads(x)  # as the gateway does with text
    except ValueError:
        return x


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        both_none = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
        return both_none or math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(b, dict) and len(b) == 1:  # the only output, by its name
        return _same(a, next(iter(b.values())))
    return bool(a == b)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
