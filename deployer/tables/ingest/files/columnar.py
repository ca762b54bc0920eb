"""Reads Parquet files, Arrow IPC files and streams, and Lance datasets, whose columns have types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from deployer.errors import InvalidInput
from deployer.specs.types.arrow import arrow_field, column_of
from deployer.tables.ingest.files.source_files import file_size, is_on_s3, open_file

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import Source

BATCH_ROWS = 131_072
# Arrow's files align buffers only to 8 bytes, and Lance panics on decimals that are not aligned to 16 bytes.
ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)


def units(source: Source) -> list[tuple[int, int]]:
    """Returns the units that splits consist of, as (rows, bytes when read): row groups, record batches or fragments."""
    if source.format == "parquet":
        metadata = _parquet(source).metadata
        groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
        return [(group.num_rows, group.total_byte_size) for group in groups]
    if source.format == "lance":
        found = _lance(source).get_fragments()
        return [(f.metadata.num_rows, sum(file.file_size_bytes or 0 for file in f.metadata.files)) for f in found]
    size = file_size(source.path)
    reader = _arrow(source)
    count = getattr(reader, "num_record_batches", 1)  # a stream is read from its start, as one unit
    return [(size // max(1, count) // 100, size // max(1, count))] * count


def schema_of(source: Source) -> pa.Schema:
    """Returns the source's columns."""
    if source.format == "parquet":
        return _parquet(source).schema_arrow
    if source.format == "lance":
        return pa.schema([_as_read(field) for field in _lance(source).schema])
    return _arrow(source).schema


def _as_read(field: pa.Field) -> pa.Field:
    """Returns the field with the type that `read_units` reads, which is binary for a blob. A type that tables do not
    support is unchanged."""
    try:
        return arrow_field(column_of(field))
    except InvalidInput:
        return field


def dataset_files(source: Source) -> dict[str, int]:
    """Returns the data files of a Lance dataset, by their path in the dataset, with sizes in bytes (0: unknown)."""
    fragments = _lance(source).get_fragments()
    return {file.path: file.file_size_bytes or 0 for each in fragments for file in each.metadata.files}


def read_units(source: Source, start: int, stop: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the units from `start` to before `stop`, with only the given columns, in the order of the
    source."""
    if source.format == "parquet":
        file = _parquet(source)
        if start == stop:
            return
        yield from file.iter_batches(BATCH_ROWS, list(range(start, stop)), list(columns), use_threads=False)
    elif source.format == "lance":
        dataset = _lance(source)
        scanner = dataset.scanner(
            columns=list(columns),
            fragments=dataset.get_fragments()[start:stop],
            scan_in_order=True,
            batch_size=BATCH_ROWS,
            blob_handling="all_binary",
        )
        yield from scanner.to_batches()
    else:
        reader = _arrow(source)
        batches = reader if not hasattr(reader, "get_batch") else (reader.get_batch(i) for i in range(start, stop))
        for batch in batches:
            yield batch.select(list(columns))


def _parquet(source: Source) -> Any:
    try:
        return pq.ParquetFile(open_file(source.path) if is_on_s3(source.path) else source.path)
    except (pa.ArrowInvalid, OSError) as failure:
        raise _unreadable(source, failure) from None


def _arrow(source: Source) -> Any:
    mapped = open_file(source.path)
    try:
        if mapped.read(6) == b"ARROW1":
            return pa.ipc.open_file(mapped, options=ALIGNED)
        mapped.seek(0)
        return pa.ipc.open_stream(mapped, options=ALIGNED)
    except (pa.ArrowInvalid, OSError) as failure:
        raise _unreadable(source, failure) from None


def _lance(source: Source) -> Any:
    from deployer.datasets.dataset import open_dataset

    return open_dataset(source.path, source.version)


def _unreadable(source: Source, failure: Exception) -> InvalidInput:
    return InvalidInput(
        f"it cannot be read as {source.format}: {str(failure).splitlines()[0]}",
        where=source.name,
        remedy="check the file, or give its --format",
    )
