"""The numbers of the protocol. They never change."""

from __future__ import annotations

from enum import IntEnum, IntFlag

MAGIC = b"TPS2"
MINOR = 0
MAX_FRAME = 64 << 20  # bytes of a body that this side accepts
MIN_MAX_FRAME = 65536  # the least that a side may name in its HELLO
MAX_INPUTS = 65536  # of one PREDICT
NO_DEADLINE = 0xFFFFFFFF
ANY_CONCURRENCY = 0xFFFFFFFF  # the sidecar finds how many queries run side by side


class Kind(IntEnum):
    HELLO = 1
    ANNOUNCE = 2
    PREDICT = 3
    REPLY = 4
    CANCEL = 5
    PING = 6
    PONG = 7
    DRAIN = 8
    BYE = 9
    FEEDBACK = 10
    LOAD = 11
    UNLOAD = 12
    MEMORY = 13
    SHARED = 14
    FREE = 15
    METRICS = 128


class Flag(IntFlag):
    COMPRESSED = 1
    END = 2


class Role(IntEnum):
    GATEWAY = 1
    SIDECAR = 2
    CONTAINER = 3


class Feature(IntFlag):
    LZ4 = 1
    STAGES = 2  # pipelines, and the status DROPPED
    HOST = 4  # versions that are loaded and unloaded on demand
    TENSORS = 8  # signatures, the element types that only they have, strings with a shape
    PARTS = 16  # answers in parts, and containers that run queries side by side
    MEMORY = 64  # large frames in memory that both sides share


class State(IntEnum):
    GONE = 0
    LOADING = 1
    READY = 2
    DRAINING = 3


class Status(IntEnum):
    """What became of one input; only those that a container sends are used here."""

    OK = 0
    MODEL_ERROR = 1
    BAD_INPUT = 2
    QUEUE_FULL = 3
    TOO_LATE = 4
    EXPIRED = 5
    DRAINING = 6
    UNKNOWN_MODEL = 7
    NO_CONTAINER = 8
    CONTAINER_FAILED = 9
    CANCELLED = 10
    DROPPED = 11  # only to sidecars with Feature.STAGES


class DType(IntEnum):
    UINT8 = 1
    INT32 = 2
    INT64 = 3
    FLOAT32 = 4
    FLOAT64 = 5
    BOOL = 6
    INT8 = 7
    INT16 = 8
    UINT16 = 9
    UINT32 = 10
    UINT64 = 11
    FLOAT16 = 12
    BFLOAT16 = 13
    BLOB = 14
    STRING = 16
    JSON = 17
    OPAQUE = 18


ITEM_SIZE: dict[int, int] = {
    DType.UINT8: 1,
    DType.INT32: 4,
    DType.INT64: 8,
    DType.FLOAT32: 4,
    DType.FLOAT64: 8,
    DType.BOOL: 1,
    DType.INT8: 1,
    DType.INT16: 2,
    DType.UINT16: 2,
    DType.UINT32: 4,
    DType.UINT64: 8,
    DType.FLOAT16: 2,
    DType.BFLOAT16: 2,
}
MAX_DIMENSIONS = 8
