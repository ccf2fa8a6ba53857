"""Pipelines: models that are a sequence of stages, each with processes and batches of its own.

The sidecar is the coordinator: single inputs flow between stages, and it forms the batches of each. Here is what users
write (`Pipeline`), what travels between stages (`stage_codec`), the same in one process (`local`), and the processes: a
supervisor, and a worker for each slot, which is the same program run again.
"""

from . import program  # early, to remember where the program was started
from .pipeline import Pipeline
from .stage import StageError

__all__ = ["Pipeline", "StageError", "program"]
