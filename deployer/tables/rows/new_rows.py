"""Writes the rows that a change adds, sorted, with separate files for each leaf. Updated rows keep their row ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.datasets.files.row_ids import ROW_ID, with_ids
from deployer.datasets.files.writer import Layout, WrittenFragment, discard, read_written, write_merged
from deployer.datasets.ordering.sort_order import sorted_rows
from deployer.errors import Refused
from deployer.tables.ingest.driver import FLUSH_BYTES, Held, hold
from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.ingest.keys.unique import READ_ROWS, TakenKeys, describe_keys
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.matching import ADDRESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

SHOWN = 5  #: maximum number of duplicate keys in a message


def leaf_ranges(table: OpenTable) -> Ranges:
    """Returns the table's leaves as ranges of keys."""
    return Ranges(tuple(table.splits), tuple(leaf.partition_id for leaf in table.state.leaves()))


def write_rows(
    layout: Layout, ranges: Ranges, dataset: LanceDataset, batches: Iterable[pa.RecordBatch]
) -> list[WrittenFragment]:
    """Writes rows with the table's columns. Rows that also have the column `_rowid` keep these row ids.

    At most about `FLUSH_BYTES` of rows are in memory at once. After a failure, all written files are removed.
    """
    splitter = ranges.splitter(layout.arrow_schema, layout.row_keys)
    held: Held = {}
    written: dict[int, list[WrittenFragment]] = {}
    size = 0
    try:
        for batch in batches:
            hold(batch, layout, splitter, held)
            size += batch.nbytes
            if size >= FLUSH_BYTES:
                _flush(layout, ranges, held, written, dataset)
                size = 0
        _flush(layout, ranges, held, written, dataset)
    except BaseException:
        discard(layout.location, [each for several in written.values() for each in several])
        raise
    return [each for number in sorted(written) for each in written[number]]


def _flush(
    layout: Layout, ranges: Ranges, held: Held, written: dict[int, list[WrittenFragment]], dataset: LanceDataset
) -> None:
    for number in sorted(held):
        rows = sorted_rows(pa.Table.from_batches(held.pop(number)), layout.order)
        ids = rows[ROW_ID].chunks if ROW_ID in rows.column_names else []
        batches = rows.select(layout.arrow_schema.names).to_batches()
        in_order = bool(layout.order)
        made = write_merged(layout, batches, ranges.partitions[number], dataset, in_order=in_order)
        written.setdefault(number, []).extend(with_ids(made, ids))


def written_keys(table: OpenTable, written: Sequence[WrittenFragment]) -> pa.Table:
    """Returns the row keys of the rows in the written fragments."""
    names, layout = list(table.row_keys), table.layout()
    schema = pa.schema([table.schema.field(name) for name in names])
    batches = [batch for each in written for batch in read_written(layout, each, names, READ_ROWS)]
    return pa.Table.from_batches(batches, schema)


def refuse_taken_keys(table: OpenTable, dataset: LanceDataset, keys: pa.Table, gone: NDArray[np.uint64]) -> None:
    """Raises Refused if a new row has the unique key of another new row, or of a row of the table that stays.

    `keys` are the row keys of all new rows. `gone` are the ascending addresses of the rows that the change removes.
    """
    if not keys.num_rows:
        return
    own, taken = KeySet(keys.columns), TakenKeys.of(table)
    repeated = own.repeats()
    there = own.present(_staying(table, dataset, taken, keys, gone))[own.codes]
    duplicate = np.flatnonzero(repeated | there)
    if not len(duplicate):
        return
    shown = ", ".join(describe_keys(keys.take(pa.array(duplicate[:SHOWN]))))
    count = len(duplicate)
    raise Refused(
        f"{count:,} changed row{'s' if count != 1 else ''} would have {'a key' if count == 1 else 'keys'} that another "
        f"row has (first: {shown}), and the table's row keys are unique; nothing was changed",
        where=table.address,
        remedy="give each row a key of its own, or delete the other rows first",
    )


def _staying(
    table: OpenTable, dataset: LanceDataset, taken: TakenKeys, keys: pa.Table, gone: NDArray[np.uint64]
) -> Iterable[pa.RecordBatch]:
    """Yields the keys of the rows that stay, from the files that may have one of `keys`."""
    span = taken.range_of(keys)
    names = list(table.row_keys)
    fragments = [dataset.get_fragment(each.fragment_id) for each in taken.files if each.meets(span)]
    if not fragments:
        return
    scanner = dataset.scanner(columns=names, fragments=fragments, with_row_address=True, batch_size=READ_ROWS)
    for batch in scanner.to_batches():
        stays = ~among(np.asarray(batch.column(ADDRESS)), gone)
        yield batch.select(names).filter(pa.array(stays))


def among(values: NDArray[np.uint64], ascending: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Returns for each of the values whether it is in `ascending`."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == values
    return found
