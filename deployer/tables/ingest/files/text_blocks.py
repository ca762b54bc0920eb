"""The division of text files into byte ranges that start and end at line ends."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.files.reading import in_mib
from deployer.tables.ingest.files.source_files import file_size, is_on_s3, open_bytes, open_file, open_stream
from deployer.tables.ingest.files.undecodable import not_utf8, undecodable

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import Source, Split

BLOCK_BYTES = 4 * 1024 * 1024  #: bytes that are parsed at a time
LONGEST_LINE = 64 * 1024 * 1024  #: bytes of a line; a small compressed file may have a line of some gigabytes
SAMPLE_BYTES = 64 * 1024  #: bytes that are read to estimate the length of a row
ROW_BYTES = 100  #: the assumed length of a row of a JSON array, where line ends do not show it
COMPRESSION = 5  #: the assumed ratio between the sizes of a gzip file after and before decompression


def ranges(source: Source, target: int) -> list[tuple[int, int, int, int]]:
    """Returns ranges as (start, stop, rows, bytes), where the number of rows is an estimate.

    A compressed file, a file that is not UTF-8, a JSON array, and a CSV file with quotes, which may contain line ends,
    are one range.
    """
    size = file_size(source.path)
    if not size:
        return [(0, 0, 0, 0)]
    if source.is_one_stream:
        factor = COMPRESSION if source.compressed else 1
        return [(0, size, size * factor // 100, size * factor)]
    with open_bytes(source.path) as data:
        start_of_file = data[:SAMPLE_BYTES]
        per_row = _row_bytes(start_of_file)
        if source.format == "json" and begins_array(start_of_file):
            return [(0, size, size // ROW_BYTES, size)]
        if source.format == "csv" and data.find(b'"', 0, size) >= 0:
            return [(0, size, size // per_row, size)]
        found, start = [], 0
        while start < size:
            end = data.find(b"\n", min(start + target, size) - 1, size) + 1
            stop = end or size
            found.append((start, stop, (stop - start) // per_row, stop - start))
            start = stop
        return found


def begins_array(start: bytes) -> bool:
    """Returns whether the first bytes of a JSON file are those of an array."""
    return start.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def _row_bytes(sample: bytes) -> int:
    return max(1, len(sample) // max(1, sample.count(b"\n")))


def may_have_quotes(split: Split) -> bool:
    """Returns whether a quote may be in this part of a CSV file. Returns True for a file that is read as one stream.

    A file with quotes is one split. Therefore a split that does not begin at the start of the file has no quotes.
    """
    source = split.source
    if source.is_one_stream or split.start or not split.stop:
        return source.is_one_stream
    with open_bytes(source.path) as data:
        return data.find(b'"', 0, split.stop) >= 0


def open_range(source: Source, start: int, stop: int) -> Any:
    """Returns an Arrow input stream over the range, uncompressed, in UTF-8."""
    if start == stop:
        return pa.BufferReader(b"")
    if source.is_one_stream:
        stream = open_stream(source.path, compressed=source.compressed)
        encoding = source.dialect.encoding
        return stream if encoding == "utf-8" else pa.transcoding_input_stream(stream, encoding, "utf-8")
    if is_on_s3(source.path):
        return open_file(source.path).get_stream(start, stop - start)
    mapped = pa.memory_map(source.path)
    mapped.seek(start)
    return pa.BufferReader(mapped.read_buffer(stop - start))


def line_blocks(stream: Any, name: str) -> Iterator[bytes]:
    """Yields blocks of whole lines, without a byte order mark at the start.

    Raises InvalidInput, with the `name` of the source, for a line that is too long or not UTF-8.
    """
    begun: list[bytes] = []
    length = lines = 0
    block = _read(stream, name).removeprefix(codecs.BOM_UTF8)
    while block:
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join((*begun, block[:cut]))
            _check_utf8(whole, lines, name)
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
        block = _read(stream, name)
    rest = b"".join(begun)
    _check_utf8(rest, lines, name)
    if rest.strip():
        yield rest


def _read(stream: Any, name: str) -> bytes:
    try:
        block: bytes = stream.read(BLOCK_BYTES)
    except UnicodeError as failure:
        raise undecodable(name, failure) from None
    return block


def _check_utf8(block: bytes, lines_before: int, name: str) -> None:
    """Raises InvalidInput for the first line that is not UTF-8, because Arrow's JSON reader does not check this."""
    if block.isascii():
        return
    try:
        block.decode()
    except UnicodeDecodeError as failure:
        number = lines_before + block.count(b"\n", 0, failure.start) + 1
        line = block[block.rfind(b"\n", 0, failure.start) + 1 :].partition(b"\n")[0]
        raise not_utf8(line, number, name) from None
