"""Files of lines as byte ranges that start and end at line ends."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from deployer.tables.ingest.sources import Source

BLOCK_BYTES = 4 * 1024 * 1024  #: how much is parsed at a time
SAMPLE_BYTES = 64 * 1024  #: how much is looked at to guess how long a row is
COMPRESSION = 5  #: about how many times larger a gzip file is when read


def ranges(source: Source, target: int) -> list[tuple[int, int, int, int]]:
    """Ranges as (start, stop, rows, bytes), where rows are a guess.

    A compressed file, or a CSV file in which quotes may hide line ends, is one range.
    """
    path = Path(source.path)
    size = path.stat().st_size
    if not size:
        return [(0, 0, 0, 0)]
    if source.compressed:
        return [(0, size, size * COMPRESSION // 100, size * COMPRESSION)]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        per_row = _row_bytes(data[:SAMPLE_BYTES])
        if source.format == "csv" and data.find(b'"') >= 0:
            return [(0, size, size // per_row, size)]
        found, start = [], 0
        while start < size:
            end = data.find(b"\n", min(start + target, size) - 1) + 1
            stop = end or size
            found.append((start, stop, (stop - start) // per_row, stop - start))
            start = stop
        return found


def _row_bytes(sample: bytes) -> int:
    return max(1, len(sample) // max(1, sample.count(b"\n")))


def has_quotes(source: Source) -> bool:
    """Whether the file has a quote anywhere; taken for granted of a compressed one."""
    path = Path(source.path)
    if source.compressed or not path.stat().st_size:
        return source.compressed
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b'"') >= 0


def open_range(source: Source, start: int, stop: int) -> Any:
    """An Arrow input stream over the range, uncompressed."""
    if source.compressed:
        return pa.input_stream(source.path, compression="gzip")
    if start == stop:
        return pa.BufferReader(b"")
    mapped = pa.memory_map(source.path)
    mapped.seek(start)
    return pa.BufferReader(mapped.read_buffer(stop - start))


def line_blocks(stream: Any) -> Iterator[bytes]:
    """Blocks of whole lines."""
    rest = b""
    while block := stream.read(BLOCK_BYTES):
        block = rest + block
        cut = block.rfind(b"\n") + 1
        rest = block[cut:]
        if cut:
            yield block[:cut]
    if rest.strip():
        yield rest
