"""How a predict function is run: with batches on the main thread, or with single queries side by side."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any


class Execution(Enum):
    BATCHES = "batches"  # one list of inputs at a time
    THREADS = "threads"  # one input each, on threads
    EVENT_LOOP = "event loop"  # one input each, as tasks of asyncio


def execution_of(predict: Callable[..., Any], concurrent: bool = False) -> Execution:
    """By the kind of function that predict is. `concurrent` says that a plain function takes one input, too."""
    while isinstance(predict, partial):
        predict = predict.func
    if not (inspect.isroutine(predict) or isinstance(predict, type)):
        predict = type(predict).__call__
    if inspect.isasyncgenfunction(predict) or inspect.iscoroutinefunction(predict):
        return Execution.EVENT_LOOP
    if concurrent or inspect.isgeneratorfunction(predict):
        return Execution.THREADS
    return Execution.BATCHES
