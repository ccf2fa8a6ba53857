"""Grey pictures as PNG: 8 bits for each pixel, one row behind the other."""

import struct
import zlib

import numpy as np

MAGIC = b"\x89PNG\r\n\x1a\n"
MOST = 1 << 20  # pixels


def read(data: bytes) -> np.ndarray:
    """The pixels, as an array of uint8 with a row for each row. It raises ValueError."""
    if not data.startswith(MAGIC):
        raise ValueError("this is no PNG")
    head, packed = b"", b""
    for kind, content in chunks(data):
        if kind == b"IHDR":
            head = content
        elif kind == b"IDAT":
            packed += content
    if len(head) != 13:
        raise ValueError("the PNG has no header")
    width, height, *form = struct.unpack(">IIBBBBB", head)
    if form != [8, 0, 0, 0, 0]:
        raise ValueError("only grey pictures of 8 bits for each pixel are read, not interlaced")
    if not 0 < width * height <= MOST:
        raise ValueError(f"the picture is {width} by {height} pixels large")
    return unfiltered(unpacked(packed, height * (width + 1)), width, height)


def chunks(data: bytes):
    at = len(MAGIC)
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += 12 + size


def unpacked(packed: bytes, size: int) -> bytes:
    """At most what the header promised, however much it would be."""
    try:
        raw = zlib.decompressobj().decompress(packed, size)
    except zlib.error as e:
        raise ValueError(f"the PNG is broken: {e}") from None
    if len(raw) != size:
        raise ValueError(f"the PNG has {len(raw)} bytes of pixels, not {size}")
    return raw


def unfiltered(raw: bytes, width: int, height: int) -> np.ndarray:
    """Each row says how its pixels were written: as differences to their neighbours, left and above."""
    pixels = np.zeros((height + 1, width + 1), dtype=np.uint8)  # with a border of zeros above and on the left
    for y, row in enumerate(np.frombuffer(raw, np.uint8).reshape(height, width + 1), start=1):
        for x in range(1, width + 1):
            left, above, corner = (int(pixels[p]) for p in ((y, x - 1), (y - 1, x), (y - 1, x - 1)))
            pixels[y, x] = (int(row[x]) + predicted(int(row[0]), left, above, corner)) % 256
    return pixels[1:, 1:].copy()


def predicted(how: int, left: int, above: int, corner: int) -> int:
    match how:
        case 0:
            return 0
        case 1:
            return left
        case 2:
            return above
        case 3:
            return (left + above) // 2
        case 4:
            guess = left + above - corner
            return min((left, above, corner), key=lambda one: abs(guess - one))
    raise ValueError(f"the PNG has a row that is filtered by {how}")


def write(pixels: np.ndarray) -> bytes:
    """The other way, without filters."""
    height, width = pixels.shape
    rows = np.pad(pixels.astype(np.uint8), ((0, 0), (1, 0)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return MAGIC + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )
