"""Commits the rows of a refresh as one version of the view, with a record of the inputs that the view then reflects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.files.writer import WrittenFragment, discard, write_stream
from deployer.errors import Conflict, Refused
from deployer.live.reader import has_unique_keys
from deployer.platform.text.formatting import count
from deployer.state.log.requirements import TableRequirement
from deployer.state.model.entities import RowCounts
from deployer.tables.ingest.keys.sets import KeySet
from deployer.tables.ingest.keys.unique import describe_keys
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.change import FragmentCounts, RowChange, RowPlan, leaf_changes
from deployer.tables.rows.commit import RowJob
from deployer.tables.rows.holds import ALL, refuse_held, refuse_held_addresses
from deployer.tables.rows.load import WrittenRows, require_same_table
from deployer.tables.rows.matching import Deletions, offsets_of, rows_by_partition
from deployer.tables.rows.new_rows import SHOWN, leaf_ranges, refuse_taken_keys, write_rows, written_keys
from deployer.views.definition import ReflectedInputs
from deployer.views.refresh.reading import Identities, ReadStoredRows
from deployer.views.refresh.record import KIND, reflected, sources_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True)
class NewRows:
    """The new rows of a refresh, written and not committed.

    `removed` has the identities of the rows to remove; None removes all rows. `added` has the identities of the new
    rows, where some rows are removed. `found` has the location and version of the dataset, and the addresses of all its
    rows with the removed identities; None where they are unknown.

    `replaced` says that each added identity has one new row, which replaces all its former rows. `all_return` says that
    each removed identity is added again; `added` is then not needed.
    """

    written: tuple[WrittenFragment, ...]
    removed: pa.Table | None
    added: pa.Table | None
    found: tuple[str, int, NDArray[np.uint64]] | None = None
    replaced: bool = False
    all_return: bool = False


@dataclass(frozen=True)
class RefreshCommit:
    """One commit of a refresh under its job id. `base` has the inputs that the view reflected when the rows were
    computed, and `record` those that it reflects after the commit. `held` requires that this process still owns the
    run."""

    job_id: str
    base: ReflectedInputs | None
    record: ReflectedInputs
    identity: tuple[str, ...]
    held: tuple[TableRequirement, ...] = ()

    def run(self, table: OpenTable, rows: NewRows) -> RowChange:
        """Commits the rows to the view; readers see all of them or none. If the job is already committed, does nothing.

        Removes the written files if it is certain that the rows are not committed. Raises Conflict where another
        refresh was committed first or the view was changed; OutcomeUnknown where Lance did not answer.
        """
        files = Deletions(table.location)
        own = WrittenRows(rows.written, table.state.schema, table.entry.dataset)

        def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
            require_same_table(now, dataset, own, self.job_id, KIND)
            if reflected(now.state) != self.base:
                raise Conflict(
                    "another refresh of the view was committed meanwhile",
                    where=table.address,
                    remedy="nothing of this one was committed; refresh again if the view is still late",
                )
            if rows.removed is None:
                refuse_held(now, ALL, "replaced")
                return _in_place_of_all(now, dataset, rows.written)
            return self._in_place_of_some(now, dataset, rows, rows.removed, files)

        job = RowJob(
            KIND,
            plan,
            files,
            self.job_id,
            may_empty=True,
            sources=sources_of(self.record),
            owns_rows=False,
            indexes=True,
            also=self.held,
        )
        try:
            done = job.run(table)
        except (Conflict, Refused):
            discard(table.location, rows.written)
            raise
        if done.already_done or not done.counts.changed:
            discard(table.location, rows.written)
        return done

    def _in_place_of_some(
        self, table: OpenTable, dataset: LanceDataset, rows: NewRows, identities: pa.Table, files: Deletions
    ) -> RowPlan:
        if rows.found is not None and rows.found[:2] == (table.location, int(dataset.version)):
            addresses = rows.found[2]
        else:
            addresses = ReadStoredRows(table, dataset, self.identity).addresses(identities)
        refuse_held_addresses(table, addresses, "changed")
        own_keys = rows.replaced and set(table.row_keys) == set(self.identity)  # then no two rows have the same keys
        compared = has_unique_keys(table.state) and bool(rows.written) and not own_keys
        if compared:
            refuse_taken_keys(table, dataset, written_keys(table, rows.written), addresses)
        changed, removed = files.without(dataset, offsets_of([addresses]))
        inserted = sum(each.rows for each in rows.written)
        updated = min(_updated(rows), inserted, len(addresses))
        counts = RowCounts(inserted - updated, updated, len(addresses) - updated)
        gone = {number: len(found) for number, found in offsets_of([addresses]).items()}
        leaves = leaf_changes(
            [
                *((leaf, RowCounts(deleted=n)) for leaf, n in rows_by_partition(table, gone)),
                *((each.partition, RowCounts(inserted=each.rows)) for each in rows.written),
            ]
        )
        made = FragmentCounts(len(changed), len(removed), len(rows.written))
        version = int(dataset.version)
        return RowPlan(version, counts, leaves, made, changed, removed, rows.written, compared)


def _in_place_of_all(table: OpenTable, dataset: LanceDataset, written: Sequence[WrittenFragment]) -> RowPlan:
    held = {file.fragment_id: file.rows for file in table.state.files}
    gone = [(leaf, RowCounts(deleted=n)) for leaf, n in rows_by_partition(table, held)]
    come = [(each.partition, RowCounts(inserted=each.rows)) for each in written]
    counts = RowCounts(sum(each.rows for each in written), 0, sum(held.values()))
    if has_unique_keys(table.state):
        _refuse_repeated(table, written)
    made = FragmentCounts(removed=len(held), added=len(written))
    return RowPlan(
        int(dataset.version),
        counts,
        leaf_changes([*gone, *come]),
        made,
        removed_ids=tuple(sorted(held)),
        written=tuple(written),
        compared=has_unique_keys(table.state),
    )


def _refuse_repeated(table: OpenTable, written: Sequence[WrittenFragment]) -> None:
    """Raises Refused where several rows of a view that has unique keys have one key."""
    keys = written_keys(table, written)
    repeated = np.flatnonzero(KeySet(keys.columns).repeats()) if keys.num_rows else np.zeros(0, np.int64)
    if len(repeated):
        shown = ", ".join(describe_keys(keys.take(pa.array(repeated[:SHOWN]))))
        raise Refused(
            f"the view's query gives {count(len(repeated), 'row')} with a key that another row has (first: {shown}), "
            "and its row keys are unique; the view is unchanged",
            where=table.address,
            remedy="choose other row keys, or leave `unique` out",
        )


def _updated(rows: NewRows) -> int:
    """Returns the number of added rows that have the identity of a removed row."""
    if rows.all_return and rows.removed is not None:
        return int(rows.removed.num_rows)
    if rows.removed is None or rows.added is None or not rows.removed.num_rows or not rows.added.num_rows:
        return 0
    return len(Identities(rows.removed).places_in(rows.added.columns))


def write(
    table: OpenTable, dataset: LanceDataset, batches: Iterable[pa.RecordBatch], max_rows: int | None
) -> tuple[WrittenFragment, ...]:
    """Writes rows of the view, sorted and in separate files for each leaf. Commits nothing. `max_rows` is the largest
    number of rows in a file.

    Raises Refused for values that the view's columns cannot hold. After an error no file is left.
    """
    layout = table.layout()
    if max_rows is not None:
        layout = replace(layout, max_rows_per_file=min(max_rows, layout.max_rows_per_file))
    rows = fitted(table.schema, batches, table.address)
    if layout.order:
        return tuple(write_rows(layout, leaf_ranges(table), dataset, rows))
    leaf = table.state.leaves()[0].partition_id if table.state.leaves() else None
    return tuple(write_stream(layout, rows, leaf, dataset))


def fitted(schema: pa.Schema, batches: Iterable[pa.RecordBatch], address: str) -> Iterator[pa.RecordBatch]:
    """Yields the rows with the types of the view's columns. Raises Refused, naming the view's `address`, for values
    that the columns cannot hold."""
    for batch in batches:
        columns = []
        for each in schema:
            is_given = each.name in batch.schema.names  # False for a former identity once the sources have other keys
            values = batch.column(each.name) if is_given else pa.nulls(batch.num_rows, each.type)
            if values.null_count and not each.nullable:
                raise Refused(
                    f"column {each.name} of the view cannot be null, and is in {count(values.null_count, 'row')} that "
                    "its query gives; the view is unchanged",
                    where=address,
                    remedy="leave these rows out by a condition in the query, or use other row keys",
                )
            columns.append(values if values.type == each.type else _cast(address, values, each))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(address: str, values: Any, wanted: pa.Field) -> Any:
    try:
        if isinstance(wanted.type, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(wanted.type, values.cast(wanted.type.storage_type))
        return values.cast(wanted.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as failure:
        raise Refused(
            f"column {wanted.name} of the view is {wanted.type} and cannot hold what its query gives, {values.type}: "
            f"{str(failure).partition(chr(10))[0]}",
            where=address,
            remedy="declare the view again with the types of its query",
        ) from None
