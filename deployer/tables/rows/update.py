"""Updates rows: the old rows are deleted in place, and the new rows are written into the leaves of their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.files.writer import discard
from deployer.errors import InvalidInput
from deployer.live.reader import has_unique_keys
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state.model.entities import RowCounts
from deployer.tables.conversion.sql_values import check_expression
from deployer.tables.ingest.rows.check import match_columns
from deployer.tables.ingest.rows.computed_values import refuse_values
from deployer.tables.open_table import OpenTable
from deployer.tables.read.key_values import unknown_column
from deployer.tables.read.zoned_literals import with_instants
from deployer.tables.rows.change import (
    FragmentCounts,
    LeafChange,
    Offsets,
    RowChange,
    RowPlan,
    leaf_changes,
    total,
)
from deployer.tables.rows.commit import RowJob
from deployer.tables.rows.holds import refuse_held
from deployer.tables.rows.matching import Deletions, addresses_of, rows_by_partition
from deployer.tables.rows.new_rows import refuse_taken_keys, written_keys
from deployer.tables.rows.tasks import Assignments, RunTasks, columns_of, first_error, run_here, tasks_of

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

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
    indexes: bool = True,
    on_progress: OnProgress = no_progress,
    run_tasks: RunTasks = run_here,
) -> RowChange:
    """Updates columns in the rows for which the SQL condition `where` is true, as one version; None updates all rows.

    `values` are Python values by column. `values_sql` are SQL expressions over the row before the change, which
    DataFusion computes. Values are cast if the cast does not change them. Rows whose row keys change move to the leaf
    of their new key. `run_tasks` runs the work, by leaf, in other processes. `indexes`: the table's indexes are updated
    afterwards.

    Raises InvalidInput for columns, conditions and expressions that cannot be used, and Refused for values that do not
    fit their column, for nulls in a column without nulls, and for unique keys that another row has. Otherwise it raises
    as `delete_rows` does.
    """
    files = Deletions(table.location)
    assign = Assignments(values or {}, {name: with_instants(sql) for name, sql in (values_sql or {}).items()})
    _check_assignments(table, assign)

    def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
        refuse_held(now, where or EVERY, "changed")
        on_progress(Progress("looking for rows", 0, now.state.files.rows))
        in_parts = run_tasks is not run_here
        tasks = tasks_of(now, dataset, where or EVERY, assign, in_parts=in_parts, writes=not dry_run)
        done = run_tasks(dataset, tasks)
        written = [each for part in done for each in part.written]
        try:
            if error := first_error(done):
                raise error
            offsets = {number: rows for part in done for number, rows in part.offsets.items()}
            if dry_run:
                return _foreseen(now, dataset, offsets)
            compared = has_unique_keys(now.state) and not assign.columns.isdisjoint(now.row_keys)
            if compared and written:
                refuse_taken_keys(now, dataset, written_keys(now, written), addresses_of(offsets))
            on_progress(Progress("updating", 0, sum(map(len, offsets.values()))))
            changed, removed = files.without(dataset, offsets)
        except BaseException:
            discard(now.location, written)
            raise
        fragments = FragmentCounts(len(changed), len(removed), len(written))
        leaves = _leaves(now, offsets)
        version = int(dataset.version)
        return RowPlan(version, total(leaves), leaves, fragments, changed, removed, tuple(written), compared)

    return RowJob(kind, plan, files, job_id, dry_run, indexes=indexes).run(table)


def _foreseen(table: OpenTable, dataset: LanceDataset, offsets: Offsets) -> RowPlan:
    """Returns the plan of an update in a dry run. The number of new fragments depends on the sizes of the rows; the
    plan has one for each leaf, which is the minimum."""
    held = {i: file.rows for i in offsets if (file := table.state.files.get(i)) is not None}
    whole = sum(held.get(i) == len(rows) for i, rows in offsets.items())
    leaves = _leaves(table, offsets)
    return RowPlan(
        int(dataset.version), total(leaves), leaves, FragmentCounts(len(offsets) - whole, whole, len(leaves))
    )


def _leaves(table: OpenTable, offsets: Offsets) -> tuple[LeafChange, ...]:
    rows = rows_by_partition(table, {number: len(own) for number, own in offsets.items()})
    return leaf_changes((leaf, RowCounts(updated=n)) for leaf, n in rows)


def _check_assignments(table: OpenTable, assign: Assignments) -> None:
    """Raises InvalidInput for values that cannot be assigned to any row, before rows are read."""
    schema, address = table.schema, table.address
    if not assign.columns:
        raise InvalidInput(
            "no column is given a value",
            where=address,
            remedy="give `values` or `values_sql` (on the command line --set)",
        )
    for name in (*assign.values, *assign.expressions):
        if name not in schema.names:
            raise unknown_column(name, schema.names, address)
    if both := sorted(assign.values.keys() & assign.expressions.keys()):
        raise InvalidInput(
            f"column {both[0]!r} is in `values` and in `values_sql`", where=address, remedy="give it one value"
        )
    refuse_values(schema, assign.expressions, address)
    for name, expression in assign.expressions.items():
        check_expression(schema, expression, f"{address}, column {name}", {})
    if assign.values:
        given = pa.table(columns_of(assign.values, 1, address)).schema
        wanted = pa.schema([schema.field(name) for name in assign.values])
        match_columns(given, wanted, where=address, text=False, ignore_extra=False)
