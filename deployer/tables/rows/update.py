"""Gives rows other values: they are deleted in place and written again, in the leaves of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.files.row_ids import ROW_ID
from deployer.errors import InvalidInput
from deployer.live.reader import has_unique_keys
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state.model.entities import RowCounts
from deployer.tables.conversion.sql_values import check_expression, computed_here
from deployer.tables.ingest.rows.bad_rows import BadRows, refusal
from deployer.tables.ingest.rows.check import SourceRows, check, match_columns
from deployer.tables.open_table import OpenTable
from deployer.tables.read.key_values import unknown_column
from deployer.tables.read.zoned_literals import with_instants
from deployer.tables.rows.change import FragmentCounts, RowChange, RowPlan, leaf_changes, total
from deployer.tables.rows.commit import RowJob, discarded
from deployer.tables.rows.holds import refuse_held
from deployer.tables.rows.matching import ADDRESS, Deletions, matching_rows, offsets_of, rows_by_partition
from deployer.tables.rows.new_rows import refuse_taken_keys, write_rows

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

LISTED = 10  #: rows that an error lists
EVERY = "true"


def update_rows(
    table: OpenTable,
    where: str | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    values_sql: Mapping[str, str] | None = None,
    job_id: str | None = None,
    kind: str = "update",
    dry_run: bool = False,
    on_progress: OnProgress = no_progress,
) -> RowChange:
    """Gives columns other values in the rows for which the SQL condition is true, as one version; None updates all.

    `values` are Python values by column, `values_sql` SQL expressions over the row as it was, computed by DataFusion.
    Values are cast where none changes. Rows whose row keys change move to the leaf of their new key.

    Raises InvalidInput for columns, conditions and expressions that cannot be used; Refused for values that do not fit
    their column, nulls where none may be, and unique keys that another row has; else as `delete_rows`.
    """
    files = Deletions(table.location)
    literals, expressions = dict(values or {}), {name: with_instants(sql) for name, sql in (values_sql or {}).items()}
    _check_assignments(table, literals, expressions)

    def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
        refuse_held(now, where or EVERY, "changed")
        on_progress(Progress("looking for rows", 0, now.state.files.rows))
        if dry_run:
            found = offsets_of([batch.column(ADDRESS) for batch in matching_rows(now, dataset, where or EVERY)])
            return updated(now, dataset, {i: len(rows) for i, rows in found.items()}, None)
        addresses, keys = list[Any](), list[pa.RecordBatch]()
        batches = _new_values(now, dataset, where or EVERY, literals, expressions, addresses, keys)
        written = write_rows(now, dataset, batches)
        offsets = offsets_of(addresses)
        found_plan = updated(now, dataset, {i: len(rows) for i, rows in offsets.items()}, written)
        with discarded(now, found_plan):
            compared = has_unique_keys(now.state) and bool({*literals, *expressions} & {*now.row_keys})
            if compared and keys:
                gone = np.sort(np.concatenate([np.asarray(each, dtype=np.uint64) for each in addresses]))
                refuse_taken_keys(now, dataset, pa.Table.from_batches(keys), gone)
            on_progress(Progress("updating", 0, found_plan.counts.updated))
            changed, removed = files.without(dataset, offsets)
        fragments = FragmentCounts(len(changed), len(removed), len(written))
        return RowPlan(
            found_plan.version,
            found_plan.counts,
            found_plan.leaves,
            fragments,
            changed,
            removed,
            tuple(written),
            compared=compared,
        )

    return RowJob(kind, plan, files, job_id, dry_run).run(table)


def updated(table: OpenTable, dataset: LanceDataset, counts: Mapping[int, int], written: Any) -> RowPlan:
    """The plan of an update of so many rows of each fragment, without what it deletes."""
    leaves = leaf_changes((leaf, RowCounts(updated=n)) for leaf, n in rows_by_partition(table, counts))
    held = {i: file.rows for i in counts if (file := table.state.files.get(i)) is not None}
    whole = sum(held.get(i) == n for i, n in counts.items())
    # How many fragments come depends on the rows' sizes; there is one at least for each leaf.
    fragments = FragmentCounts(len(counts) - whole, whole, len({each.partition for each in leaves}))
    return RowPlan(int(dataset.version), total(leaves), leaves, fragments, written=tuple(written or ()))


def _check_assignments(table: OpenTable, values: Mapping[str, Any], expressions: Mapping[str, str]) -> None:
    """Raises InvalidInput, before any row is read, for what cannot be assigned to any row."""
    schema, address = table.schema, table.address
    if not values and not expressions:
        raise InvalidInput("no column is given a value", where=address, remedy="give `values` or `values_sql`")
    for name in (*values, *expressions):
        if name not in schema.names:
            raise unknown_column(name, schema.names, address)
    if both := sorted(values.keys() & expressions.keys()):
        raise InvalidInput(
            f"column {both[0]!r} is in `values` and in `values_sql`", where=address, remedy="give it one value"
        )
    for name, expression in expressions.items():
        check_expression(schema, expression, f"{address}, column {name}", {})
    if values:
        given = _columns_of(values, 1, address)
        match_columns(
            given.schema,
            pa.schema([schema.field(name) for name in values]),
            where=address,
            text=False,
            ignore_extra=False,
        )


def _columns_of(values: Mapping[str, Any], rows: int, address: str) -> pa.RecordBatch:
    """The same values for each row."""
    arrays = []
    for name, value in values.items():
        try:
            scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
            arrays.append(pa.repeat(scalar, rows))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
            raise InvalidInput(
                f"the value of column {name!r} is not one that Arrow has: {str(failure).splitlines()[0]}",
                where=address,
                remedy="give a value of the column's type",
            ) from None
    return pa.RecordBatch.from_arrays(arrays, names=list(values))


def _new_values(
    table: OpenTable,
    dataset: LanceDataset,
    where: str,
    values: Mapping[str, Any],
    expressions: Mapping[str, str],
    addresses: list[Any],
    keys: list[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows with their new values; their addresses are put into `addresses`, and their new keys into `keys`."""
    schema, names, ids = table.schema, table.schema.names, bool(dataset.has_stable_row_ids)
    seen, bad = 0, BadRows()
    for batch in matching_rows(table, dataset, where, names, with_ids=ids):
        rows = batch.select(names)
        given = dict(zip(names, rows.columns, strict=True))
        if values:
            fixed = _columns_of(values, rows.num_rows, table.address)
            given.update(zip(values, fixed.columns, strict=True))
        for name, expression in expressions.items():
            given[name] = _computed(rows, name, expression, table.address)
        numbers = np.arange(seen + 1, seen + rows.num_rows + 1)
        seen += rows.num_rows
        new = pa.RecordBatch.from_arrays(list(given.values()), names=names)
        checked = check(SourceRows(new, numbers), schema, table.row_keys, text=False, listed=LISTED)
        bad = bad.joined(checked.bad)
        if bad.rows:
            continue
        addresses.append(batch.column(ADDRESS))
        if table.row_keys:
            keys.append(checked.rows.select(list(table.row_keys)))
        yield checked.rows.append_column(ROW_ID, batch.column(ROW_ID)) if ids else checked.rows
    if bad.rows:
        raise refusal({"the rows that it finds": bad.first(LISTED)}, table.address, "updated")


def _computed(rows: pa.RecordBatch, name: str, expression: str, address: str) -> Any:
    try:
        return computed_here(rows, expression)
    except ValueError as failure:
        raise InvalidInput(
            f"the expression {expression!r} of column {name!r} cannot be computed for all rows: {failure}",
            where=address,
            remedy="change the expression, or leave these rows out by the condition",
        ) from None
