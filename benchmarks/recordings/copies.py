"""Writes copies of one recording, each with its own segment. Writing as many by rerun-sdk would take an hour."""

from __future__ import annotations

import struct
from pathlib import Path

import xxhash

_FOOTER = struct.Struct("<QQI12s")  #: start, length and checksum of the footer, and the bytes that follow
_SEED = 7850921


def write_copies(recording: Path, folder: Path, count: int) -> None:
    """Writes `count` recordings into a folder. The name of the original file is its segment, which has 12
    characters."""
    data, old = recording.read_bytes(), recording.stem.encode()
    start, length, _, rest = _FOOTER.unpack(data[-_FOOTER.size :])
    for number in range(count):
        segment = f"many_{number:07}"
        copy = bytearray(data.replace(old, segment.encode()))
        checksum = xxhash.xxh32_intdigest(bytes(copy[start : start + length]), _SEED)
        copy[-_FOOTER.size :] = _FOOTER.pack(start, length, checksum, rest)
        (folder / f"{segment}.rrd").write_bytes(copy)
