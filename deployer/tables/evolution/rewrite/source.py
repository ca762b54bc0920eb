"""The source of a rewrite: one pinned version of the table's dataset, or the fragments that were added to it since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deployer.datasets.dataset import fragments_of
from deployer.errors import Refused
from deployer.specs.types.column_names import quoted
from deployer.state.model.entities import Partition
from deployer.state.model.keys import decode_key
from deployer.tables.evolution.rewrite.progress import Round
from deployer.tables.evolution.rewrite.target import Target
from deployer.tables.ingest.engine_choice import SAMPLED_SPLITS, TASK_ROWS
from deployer.tables.ingest.files.find import splits_of
from deployer.tables.ingest.files.model import Format, ReadOptions, Source, Split
from deployer.tables.ingest.loading import LoadPlan
from deployer.tables.ingest.readers.splits import Reading, key_sample, plan_reading
from deployer.tables.ingest.rows.computed_values import without_definitions
from deployer.tables.layout.partitions.key_ranges import Ranges, cut
from deployer.tables.open_table import OpenTable

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


def refuse_null_keys(table: OpenTable, target: Target) -> None:
    """Raises Refused, with the counts, when a column that is to be a row key is null in some rows."""
    dataset = table.dataset()
    columns = [name for name in target.row_keys if dataset.schema.field(name).nullable and "`" not in name]
    found = [(name, dataset.count_rows(filter=f"{quoted(name)} IS NULL")) for name in columns]
    nulls = [f"{name!r} is null in {count:,} rows" for name, count in found if count]
    if nulls:
        raise Refused(
            f"a row key is never null, and of {table.state.files.rows:,} rows {' and '.join(nulls)}",
            where=table.address,
            remedy="give these rows values, or choose other row keys; the table is unchanged",
        )


def changed_otherwise(before: LanceDataset, now: LanceDataset) -> bool:
    """Returns whether anything but added fragments changed between two versions."""
    then, there = fragments_of(before), fragments_of(now)
    return any(there.get(number) != fragment for number, fragment in then.items()) or before.schema != now.schema


def plan_round(
    table: OpenTable, target: Target, number: int, tree: Sequence[Partition], before: LanceDataset | None
) -> Round:
    """Returns the copy that brings the new dataset to the table's newest version; `before` is its current version."""
    version = table.state.lance_version
    source = Source(table.location, Format.LANCE, table.location, False, version)
    if before is None:
        splits = tuple(splits_of([source]))
    else:
        copied = fragments_of(before).keys()
        new = [(i, each) for i, each in enumerate(table.dataset().get_fragments()) if each.fragment_id not in copied]
        splits = tuple(
            Split(n, source, i, i + 1, each.count_rows(), sum(f.file_size_bytes or 0 for f in each.metadata.files))
            for n, (i, each) in enumerate(new)
        )
    leaves = sorted((each for each in tree if each.is_leaf), key=lambda leaf: leaf.lower)
    points = tuple(decode_key(target.kinds, leaf.lower) for leaf in leaves[1:])
    ranges = Ranges(points, tuple(leaf.partition_id for leaf in leaves))
    rows = sum(split.rows for split in splits)
    if target.row_keys and rows > TASK_ROWS:
        import pyarrow as pa

        reading = _reading(target, [source])
        chosen = splits[:: max(1, len(splits) // SAMPLED_SPLITS)]
        ranges = cut(ranges, pa.concat_tables([key_sample(split, reading) for split in chosen]), rows, TASK_ROWS)
    return Round(number, version, splits, ranges)


def plan_copy(table: OpenTable, planned: Round, target: Target, location: str) -> LoadPlan:
    """Returns the round as a load into the dataset at `location`."""
    source = Source(table.location, Format.LANCE, table.location, False, planned.source_version)
    return LoadPlan(planned.splits, _reading(target, [source]), target.layout(location), planned.ranges)


def _reading(target: Target, sources: Sequence[Source]) -> Reading:
    schema = without_definitions(target.schema)  # computed values are copied like all others
    return plan_reading(sources, schema, target.row_keys, ReadOptions(), ignore_extra=False, listed=1)
