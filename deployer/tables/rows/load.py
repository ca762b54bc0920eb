"""Commits the rows of a load as an upsert, or as the replacement of all rows. The load has written the rows already.

A loaded row has all columns, and replaces all rows that have its key. Only the key columns of the table are read, only
from files whose ranges can contain a key, and one range of keys after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.files.writer import WrittenFragment, read_written
from deployer.errors import Conflict
from deployer.live.reader import has_unique_keys
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state.log.requirements import schema_fingerprint
from deployer.state.model.entities import Job, RowCounts
from deployer.tables.ingest.commit.pending import Pending, has_fields, has_files
from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.ingest.keys.unique import READ_ROWS
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.candidates import fragments_for
from deployer.tables.rows.change import FragmentCounts, RowChange, RowPlan, leaf_changes, total
from deployer.tables.rows.commit import RowJob
from deployer.tables.rows.holds import ALL, refuse_held, refuse_held_addresses
from deployer.tables.rows.matching import ADDRESS, Deletions, offsets_of, rows_by_partition
from deployer.tables.rows.new_rows import refuse_taken_keys
from deployer.tables.rows.source import keys_of, refuse_repeated, repeated_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Files of new rows, with the recorded schema (IPC bytes) and the number of the dataset for which they were
    written."""

    fragments: tuple[WrittenFragment, ...]
    schema: bytes
    dataset: int


def commit_load(
    table: OpenTable,
    mode: str,
    on: Sequence[str],
    job_id: str,
    written: Sequence[WrittenFragment],
    sources: str,
    on_progress: OnProgress,
) -> tuple[Job, bool]:
    """Commits a load in mode `upsert` or `overwrite`. Returns its job, and whether an earlier run had committed it.

    The rows must have been written for the table as it was opened. Raises as `commit_written` does.
    """
    rows = WrittenRows(tuple(written), table.state.schema, table.entry.dataset)
    done = commit_written(table, rows, mode, job_id, on=on, sources=sources, on_progress=on_progress)
    if done.job is None:
        raise AssertionError("a change with a job id has a job")
    return done.job, done.already_done


def commit_written(
    table: OpenTable,
    rows: WrittenRows,
    mode: str,
    job_id: str,
    *,
    on: Sequence[str] = (),
    sources: str = "",
    on_progress: OnProgress = no_progress,
) -> RowChange:
    """Commits the rows to the table as one version.

    In mode `upsert` they replace the rows with the same keys, which are the columns `on` or by default the row keys. In
    mode `overwrite` they replace all rows. If the job `job_id` is done already, nothing is changed. Raises Refused if
    two rows of an upsert have the same key, if a unique key is taken, and if a protected table would have no rows left.
    Raises Conflict if the table's columns changed after the rows were written. If the rows are not committed, the
    caller must remove their files.
    """
    files = Deletions(table.location)
    names = keys_of(on or None, table) if mode == "upsert" else ()

    def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
        require_same_table(now, dataset, rows, job_id, mode)
        on_progress(Progress("matching", 0, now.state.files.rows))
        if mode == "overwrite":
            refuse_held(now, ALL, "replaced")
            return _in_place_of_all(now, rows.fragments)
        return _upsert(now, dataset, names, rows.fragments, files)

    return RowJob(mode, plan, files, job_id, sources=sources, owns_rows=False).run(table)


def require_same_table(table: OpenTable, dataset: LanceDataset, rows: WrittenRows, job_id: str, mode: str) -> None:
    """Raises Conflict unless the table has the columns for which the rows were written, and the rows' files exist."""
    pending = Pending.of(job_id, mode, rows.fragments, rows.schema, rows.dataset)
    is_same = schema_fingerprint(table.state.schema) == schema_fingerprint(rows.schema)
    if not is_same or table.entry.dataset != rows.dataset or not has_fields(dataset, pending):
        raise Conflict(
            "the table was changed while rows were being written for it",
            where=table.address,
            remedy="run the ingest again",
        )
    if not has_files(table.location, pending):
        raise Conflict(
            "files of new rows were removed before their commit: it took longer than the grace period of `table gc`",
            where=table.address,
            remedy="write the rows again, and let `deployer table gc` have a longer --grace",
        )


def _in_place_of_all(table: OpenTable, written: Sequence[WrittenFragment]) -> RowPlan:
    held = {file.fragment_id: file.rows for file in table.state.files}
    gone = [(leaf, RowCounts(deleted=n)) for leaf, n in rows_by_partition(table, held)]
    come = [(each.partition, RowCounts(inserted=each.rows)) for each in written]
    leaves = leaf_changes([*gone, *come])
    fragments = FragmentCounts(removed=len(held), added=len(written))
    return RowPlan(
        table.state.lance_version,
        total(leaves),
        leaves,
        fragments,
        removed_ids=tuple(sorted(held)),
        written=tuple(written),
        compared=has_unique_keys(table.state),
    )


def _upsert(
    table: OpenTable,
    dataset: LanceDataset,
    names: tuple[str, ...],
    written: Sequence[WrittenFragment],
    files: Deletions,
) -> RowPlan:
    gone, counts = list[Any](), list[tuple[str | None, RowCounts]]()
    layout = table.layout()
    columns = list(dict.fromkeys((*names, *table.row_keys)))
    unique_by_others = has_unique_keys(table.state) and {*names} != {*table.row_keys}
    row_keys = list[pa.Table]()
    for group in _groups(table, names, written):
        rows = pa.Table.from_batches(
            [batch for each in group for batch in read_written(layout, each, columns, READ_ROWS)],
            pa.schema([table.schema.field(name) for name in columns]),
        )
        if unique_by_others:
            row_keys.append(rows.select(list(table.row_keys)))
        keyed = _without_nulls(rows.select(list(names)))
        keys = KeySet(keyed.columns)
        refuse_repeated(repeated_keys(keys, keyed), table)
        taken, addresses = _matches(table, dataset, names, keys, keyed)
        gone.append(addresses)
        updated = int(taken.sum())
        leaf = group[0].partition if len({each.partition for each in group}) == 1 else None
        counts.append((leaf, RowCounts(rows.num_rows - updated, updated, len(addresses) - updated)))
    addresses = np.sort(np.concatenate([np.zeros(0, np.uint64), *gone]))
    refuse_held_addresses(table, addresses, "changed")
    if row_keys:
        refuse_taken_keys(table, dataset, pa.concat_tables(row_keys), addresses)
    changed, removed = files.without(dataset, offsets_of([addresses]))
    leaves = leaf_changes(counts)
    fragments = FragmentCounts(len(changed), len(removed), len(written))
    version, compared = int(dataset.version), has_unique_keys(table.state)
    return RowPlan(version, total(leaves), leaves, fragments, changed, removed, tuple(written), compared)


def _groups(
    table: OpenTable, names: tuple[str, ...], written: Sequence[WrittenFragment]
) -> Iterator[list[WrittenFragment]]:
    """Yields groups of files whose keys are looked up together: the files of each leaf if the keys decide the leaf,
    otherwise all files."""
    if not written:
        return
    if not table.row_keys or not {*table.row_keys} <= {*names}:
        yield [*written]
        return
    for partition in dict.fromkeys(each.partition for each in written):
        yield [each for each in written if each.partition == partition]


def _without_nulls(keys: pa.Table) -> pa.Table:
    for name in keys.column_names:
        if keys[name].null_count:
            keys = keys.filter(pc.is_valid(keys[name]))
    return keys


def _matches(
    table: OpenTable, dataset: LanceDataset, names: Sequence[str], keys: KeySet, keyed: pa.Table
) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
    """Returns for each key, by its number, whether the table has it, and the addresses of the rows that have one of the
    keys."""
    taken, addresses = np.zeros(keys.count, np.bool_), list[Any]()
    fragments = fragments_for(table, dataset, keyed) if keyed.num_rows else []
    if fragments:
        scanner = dataset.scanner(columns=list(names), fragments=fragments, with_row_address=True)
        for codes, found in _hits(scanner.to_batches(), names, keys):
            taken[codes] = True
            addresses.append(found)
    return taken, np.concatenate([np.zeros(0, np.uint64), *addresses])


def _hits(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], keys: KeySet
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
    for batch in batches:
        rows = _without_nulls(pa.Table.from_batches([batch]).select([*names, ADDRESS]))
        codes, places = keys.matches(rows.select(list(names)).columns)
        yield codes, np.asarray(rows[ADDRESS])[places]
