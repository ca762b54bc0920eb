"""Files of lines as byte ranges that start and end at line ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.files.reading import in_mib
from deployer.tables.ingest.source_files import file_size, is_on_s3, open_bytes, open_file, open_stream

if TYPE_CHECKING:
    from deployer.tables.ingest.sources import Source, Split

BLOCK_BYTES = 4 * 1024 * 1024  #: how much is parsed at a time
LONGEST_LINE = 64 * 1024 * 1024  #: bytes; a compressed file of a few megabytes may have one of some gigabytes
SAMPLE_BYTES = 64 * 1024  #: how much is looked at to guess how long a row is
COMPRESSION = 5  #: about how many times larger a gzip file is when read


def ranges(source: Source, target: int) -> list[tuple[int, int, int, int]]:
    """Ranges as (start, stop, rows, bytes), where rows are a guess.

    A compressed file, or a CSV file in which quotes may hide line ends, is one range.
    """
    size = file_size(source.path)
    if not size:
        return [(0, 0, 0, 0)]
    if source.compressed:
        return [(0, size, size * COMPRESSION // 100, size * COMPRESSION)]
    with open_bytes(source.path) as data:
        per_row = _row_bytes(data[:SAMPLE_BYTES])
        if source.format == "csv" and data.find(b'"', 0, size) >= 0:
            return [(0, size, size // per_row, size)]
        found, start = [], 0
        while start < size:
            end = data.find(b"\n", min(start + target, size) - 1, size) + 1
            stop = end or size
            found.append((start, stop, (stop - start) // per_row, stop - start))
            start = stop
        return found


def _row_bytes(sample: bytes) -> int:
    return max(1, len(sample) // max(1, sample.count(b"\n")))


def may_have_quotes(split: Split) -> bool:
    """Whether a quote may be in this part of a CSV file: taken for granted of a compressed one.

    A file that has any is one split, so a split that does not begin the file has none, nor has one after it.
    """
    source = split.source
    if source.compressed or split.start or not split.stop:
        return source.compressed
    with open_bytes(source.path) as data:
        return data.find(b'"', 0, split.stop) >= 0


def open_range(source: Source, start: int, stop: int) -> Any:
    """An Arrow input stream over the range, uncompressed."""
    if source.compressed:
        return open_stream(source.path, compressed=True)
    if start == stop:
        return pa.BufferReader(b"")
    if is_on_s3(source.path):
        return open_file(source.path).get_stream(start, stop - start)
    mapped = pa.memory_map(source.path)
    mapped.seek(start)
    return pa.BufferReader(mapped.read_buffer(stop - start))


def line_blocks(stream: Any, name: str) -> Iterator[bytes]:
    """Blocks of whole lines. Raises InvalidInput, with the `name` of the source, for a line that is too long."""
    begun: list[bytes] = []
    length = lines = 0
    while block := stream.read(BLOCK_BYTES):
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join((*begun, block[:cut]))
            lines += whole.count(b"\n")
            yield whole
            begun, length = [], 0
        begun.append(block[cut:])
        length += len(block) - cut
        if length > LONGEST_LINE:
            raise InvalidInput(
                f"line {lines + 1:,} is longer than {in_mib(LONGEST_LINE)}",
                where=name,
                remedy="write one row in each line, and large values as Parquet",
            )
    rest = b"".join(begun)
    if rest.strip():
        yield rest
