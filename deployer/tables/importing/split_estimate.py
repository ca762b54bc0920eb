"""Split points for rows that are not loaded yet: quantiles of the row keys of a sample of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from deployer.datasets.ordering.key_ranges import key_kinds
from deployer.errors import InvalidInput
from deployer.specs.model import KeyValue, TableSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.column_names import listed
from deployer.specs.types.types import Column
from deployer.specs.values.keys import key_kind
from deployer.state.model.keys import decode_key
from deployer.tables.importing.infer import infer
from deployer.tables.ingest.files.dialects import with_dialects
from deployer.tables.ingest.files.find import find_sources, splits_of
from deployer.tables.ingest.files.model import ReadOptions, Split
from deployer.tables.ingest.readers.splits import Reading, SplitReport, checked_rows, plan_reading
from deployer.tables.ingest.rows.field_map import field_map
from deployer.tables.layout.partitions.key_sketch import KeySketch

SAMPLE_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """`points` are prefixes of the row-key tuple, ascending, as a `TableSpec` has them; `rows` were read, of which
    `sampled` were looked at."""

    keys: tuple[Column, ...]
    points: tuple[tuple[KeyValue, ...], ...]
    rows: int
    sampled: int


def estimate_split_points(
    paths: Sequence[str],
    leaves: int,
    table: TableSpec | None = None,
    row_keys: Sequence[str] = (),
    sample: int = SAMPLE_ROWS,
) -> Estimate:
    """Split points that part the rows of files into `leaves` leaves of about the same size, by the row keys of `table`
    or by these columns of the files; fewer where a few keys are most of the rows.

    Rows whose keys are null or do not fit are left out. Raises NotFound and InvalidInput for files that cannot be read.
    """
    options = ReadOptions()
    names, there = (row_keys, infer(paths, None, options).columns) if table is None else (table.row_keys, table.columns)
    if table is not None and not names:
        raise InvalidInput("it has no row keys", where=table.address, remedy="give --row-key columns of the files")
    columns = {column.name: column for column in there}
    if missing := [name for name in names if name not in columns]:
        inside = "files" if table is None else "table"
        raise InvalidInput(f"no column {missing[0]!r} in the {inside}", remedy=f"there are {listed(columns)}")
    keys = tuple(replace(columns[name], nullable=False) for name in names)
    for key in keys:
        key_kind(key)
    schema = arrow_schema(keys)
    sources = with_dialects(find_sources(paths, None), options)
    fields = field_map(arrow_schema(there))
    reading = plan_reading(sources, schema, tuple(schema.names), options, ignore_extra=True, listed=0, fields=fields)
    splits = splits_of(sources)
    sketch = KeySketch(key_kinds(schema, schema.names), sum(split.rows for split in splits), sample)
    for split in splits:
        _add(sketch, schema, reading, split)
    if not sketch.rows:
        raise InvalidInput("no row has a key", where=str(paths[0]), remedy="give files with rows")
    points = tuple(decode_key(key_kinds(schema, schema.names), point) for point in sketch.split_points(leaves))
    return Estimate(keys, points, sketch.rows, sketch.sampled)


def _add(sketch: KeySketch, schema: pa.Schema, reading: Reading, split: Split) -> None:
    report = SplitReport(split.number)
    for batch in checked_rows(split, reading, report):
        sketch.add([batch.column(name) for name in schema.names])
    if report.error is not None:
        raise report.error.as_error()
