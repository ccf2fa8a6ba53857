"""Pickles that are the same bytes whenever the same is pickled.

What differs from one process to the next and means nothing: the order of sets, whose texts hash to something else each
time; the random ids that cloudpickle gives to classes; the folder of a script, or the process of a notebook, in the
file name of code; and addresses that scikit-learn keeps.
"""

from __future__ import annotations

import hashlib
import pickle
import pickletools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any

_TEXTS = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_GETS = frozenset({"BINGET", "LONG_BINGET"})
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})  # of protocols before 4
_ADDRESSES = frozenset({"_stop_words_id"})  # attributes that hold an id(), only to save a check
_BATCH = 1000  # items that are added to a set at once
_MOST = 5_000_000  # operations of a pickle that is read for this: 20 seconds


@dataclass(slots=True)
class _Op:
    """An operation of a pickle. `place` is where MEMOIZE puts something, or where a GET takes it from."""

    code: Any
    argument: Any
    raw: bytes
    place: int = -1

    @property
    def name(self) -> str:
        return str(self.code.name)


def lasting(data: bytes, class_ids: Sequence[str] = (), files: Collection[str] = ()) -> bytes:
    """The same content without what does not last. `class_ids` are cloudpickle's, in the order of the pickle, and
    `files` the file names of its code. A pickle of more than some million operations keeps its sets and names."""
    ops = _ops(data)
    if ops is not None:
        places = _Places()
        ops = _with_sorted_sets(ops, places)
        _forget(ops, places, files)
        data = _written(ops)
    return _with_lasting_ids(data, class_ids)


def _ops(data: bytes) -> list[_Op] | None:
    """Without frames, which only say how much may be read at once. None for what is too long or of an old protocol."""
    ops: list[_Op] = []
    begin, put = 0, 0
    for code, argument, at in pickletools.genops(data):
        at = at or 0
        if ops:
            ops[-1].raw = data[begin:at]
        if code.name in _PUTS or len(ops) == _MOST:
            return None
        op = _Op(code, argument, b"")
        if code.name in _GETS:
            op.place = int(argument or 0)
        if code.name == "MEMOIZE":
            op.place, put = put, put + 1
        ops.append(op)
        begin = at
    ops[-1].raw = data[begin:]
    return [op for op in ops if op.name != "FRAME"]


class _Places:
    """What was put where, as far as it is a plain value."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[str, str]] = {}

    def put(self, place: int, made_by: _Op) -> None:
        if made_by.code.arg is not None:
            self._values[place] = made_by.name, repr(made_by.argument)

    def key(self, op: _Op) -> tuple[str, str]:
        """What sorts an operation, wherever it takes its value from."""
        return self._values.get(op.place, (op.name, "")) if op.name in _GETS else (op.name, repr(op.argument))

    def is_text(self, op: _Op, texts: Collection[str]) -> bool:
        name, text = self.key(op)
        return name in _TEXTS and text in map(repr, texts)


def _with_sorted_sets(ops: Iterable[_Op], places: _Places) -> list[_Op]:
    """Follows the stack to know with which operation each item of a set begins."""
    done: list[_Op] = []
    stack: list[tuple[int, bool]] = []  # where the making of each began, and whether it is a mark
    sets: dict[int, tuple[int, list[list[_Op]]]] = {}  # by where adding to them ended: where it began, and the items

    def items_since_mark() -> tuple[int, list[list[_Op]]]:
        mark = next(i for i in reversed(range(len(stack))) if stack[i][1])
        starts = [start for start, _ in stack[mark + 1 :]] + [len(done)]
        return stack[mark][0], [done[a:b] for a, b in pairwise(starts)]

    def sort_key(item: list[_Op]) -> list[tuple[str, str]]:
        return [places.key(op) for op in item if op.name != "MEMOIZE"]

    for op in ops:
        begin = 0
        items: list[list[_Op]] = []
        if op.name == "MEMOIZE":
            places.put(op.place, done[-1])
        elif op.name == "FROZENSET":
            mark, items = items_since_mark()
            done[mark + 1 :] = [o for item in sorted(items, key=sort_key) for o in item]
        elif op.name == "ADDITEMS":
            mark, items = items_since_mark()
            begin, before = sets.pop(mark, (mark, []))
            items = sorted(before + items, key=sort_key)
            opening = done[mark]
            done[begin:] = [o for o in _in_batches(items, opening, op)][:-1]
        below = _popped(op, stack)
        start = min(below, default=len(done))
        stack += [(start, x is pickletools.markobject) for x in op.code.stack_after]
        done.append(op)
        if op.name == "ADDITEMS":
            sets[len(done)] = begin, items
    return done


def _in_batches(items: list[list[_Op]], opening: _Op, closing: _Op) -> Iterable[_Op]:
    for i in range(0, len(items), _BATCH):
        yield opening
        for item in items[i : i + _BATCH]:
            yield from item
        yield closing


def _popped(op: _Op, stack: list[tuple[int, bool]]) -> list[int]:
    """Where began what an operation takes from the stack."""
    before = op.code.stack_before
    count = len(before)
    if pickletools.markobject in before:
        mark = next(i for i in reversed(range(len(stack))) if stack[i][1])
        count = len(stack) - mark + before.index(pickletools.markobject)
    taken = [start for start, _ in stack[len(stack) - count :]] if count else []
    del stack[len(stack) - len(taken) :]
    return taken


def _forget(ops: list[_Op], places: _Places, files: Collection[str]) -> None:
    """Addresses, and the folders of files."""
    said = [i for i, op in enumerate(ops) if op.name != "MEMOIZE"]
    for before, i in pairwise(said):
        op = ops[i]
        if isinstance(op.argument, int) and op.name not in _GETS and places.is_text(ops[before], _ADDRESSES):
            op.raw = pickle.BININT1 + b"\0"
        elif op.name in _TEXTS and (op.argument in files or places.is_text(ops[before], ["__file__"])):
            op.raw = _text(re.sub(r"^<ipython-input-\d+", "<ipython-input", PurePath(op.argument).name))


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) < 256:
        return pickle.SHORT_BINUNICODE + bytes([len(data)]) + data
    return pickle.BINUNICODE + len(data).to_bytes(4, "little") + data


def _written(ops: Iterable[_Op]) -> bytes:
    """With places by the order in which they are put now."""
    now: dict[int, int] = {}
    parts: list[bytes] = []
    for op in ops:
        if op.name == "MEMOIZE":
            now[op.place] = len(now)
        parts.append(_get(now[op.place]) if op.name in _GETS else op.raw)
    return b"".join(parts)


def _get(place: int) -> bytes:
    if place < 256:
        return pickle.BINGET + bytes([place])
    return pickle.LONG_BINGET + place.to_bytes(4, "little")


def _with_lasting_ids(data: bytes, ids: Sequence[str]) -> bytes:
    """cloudpickle gives a class a new random id each time that its definition runs. In their place come ids by the
    content."""
    content = data
    for i, id in enumerate(ids):
        content = content.replace(id.encode(), f"class {i}".encode())
    for i, id in enumerate(ids):
        name = hashlib.sha256(content + f"class {i}".encode()).hexdigest()[: len(id)]
        data = data.replace(id.encode(), name.encode())
    return data
