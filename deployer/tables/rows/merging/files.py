"""Reading of the source rows of a merge from files. The rows have the table's columns that the files have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.tables.ingest.files.dialects import with_dialects
from deployer.tables.ingest.files.find import find_sources, splits_of
from deployer.tables.ingest.files.model import Format, ReadOptions, Source
from deployer.tables.ingest.readers.splits import Reading, SplitReport, bad_by_file, checked_rows, plan_reading
from deployer.tables.ingest.rows.bad_rows import refusal
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.merging.source_parts import RowBatches

LISTED = 10  #: maximum number of bad rows that an error lists
_IGNORE_EXTRA = re.compile(r"out with --ignore-extra")


def read_files(table: OpenTable, paths: Sequence[str], format: Format | None, options: ReadOptions) -> RowBatches:
    """Returns the rows of the files, which are read during iteration and cast as a load casts them.

    Raises NotFound and InvalidInput for files that cannot be read or that have other columns. The iteration raises
    Refused for bad rows after all rows are read.
    """
    sources = with_dialects(find_sources(tuple(paths), format), options)
    open_schema = pa.schema([pa.field(each.name, each.type) for each in table.schema])  # no column is required here
    try:
        found = plan_reading(sources, open_schema, (), options, ignore_extra=False, listed=LISTED)
    except InvalidInput as error:  # a merge has no option that leaves columns out
        remedy = _IGNORE_EXTRA.sub("out of the files", error.remedy)
        raise InvalidInput(error.what, where=error.where, remedy=remedy) from None
    folders = {name for source in sources for name, _ in source.folders}
    there = folders.union(*found.names.values())
    schema = pa.schema([each for each in table.schema if each.name in there])
    keys = tuple(name for name in table.row_keys if name in there)
    reading = plan_reading(sources, schema, keys, options, ignore_extra=False, listed=LISTED)
    return RowBatches(schema, _rows(table, sources, reading))


def _rows(table: OpenTable, sources: Sequence[Source], reading: Reading) -> Iterator[pa.RecordBatch]:
    splits = tuple(splits_of(sources))
    reports = {split.number: SplitReport(split.number) for split in splits}
    for split in splits:
        yield from checked_rows(split, reading, reports[split.number])
        if error := reports[split.number].error:
            raise error.as_error()
    bad = bad_by_file(splits, reports)
    if any(each.rows for each in bad.values()):
        raise refusal(bad, table.address, "merged")
