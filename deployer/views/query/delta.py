"""The delta of a view for changes of its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from deployer.functions.model import UDF
from deployer.views.query.affected import condition_of, repeated_keys, smalls_of
from deployer.views.query.engine import fitted, in_own_thread
from deployer.views.query.group_delta import group_delta
from deployer.views.query.model import (
    FullRefreshNeeded,
    OnFailures,
    SourceChanges,
    SourceReader,
    StoredView,
    ViewDelta,
    ViewQuery,
)
from deployer.views.query.program import Identity, RowProgram, Rows
from deployer.views.query.row_run import Matches, Runtime, flat_stream, run_rows


def delta(
    query: ViewQuery,
    changes: SourceChanges,
    reader: SourceReader,
    view: StoredView,
    functions: Mapping[str, UDF] | None = None,
    on_failures: OnFailures | None = None,
) -> ViewDelta:
    """Returns the effect of changes of the sources on the view.

    `reader` reads the sources after the changes. The updated view has the rows that `build` computes; sums of floats
    may differ in their last digits. Rows of a row view are streamed; changed groups are held in memory. Raises
    FullRefreshNeeded where rows cannot be identified, or where the view lacks the changed rows. Also raises the errors
    of `build`.
    """
    runtime = Runtime(reader, functions or {}, on_failures)
    if not isinstance(query.program, RowProgram):
        found = group_delta(query, query.program, runtime, changes, view)
        return replace(found, added=in_own_thread(found.added))
    for rows in query.program.branches:
        _check_known(query, rows, changes)
    return ViewDelta(
        _removed(query, query.program.branches, runtime, changes),
        in_own_thread(_added(query, query.program.branches, runtime, changes)),
    )


def _check_known(query: ViewQuery, rows: Rows, changes: SourceChanges) -> None:
    if rows.source != Identity():
        return
    for table in dict.fromkeys((rows.scan.table, *(each.scan.table for each in rows.lookups))):
        if table not in changes.tables:
            continue
        insert = query.full_refresh.get((table, "insert"))
        reason = insert or query.full_refresh[(table, "delete")]
        [columns] = [each.columns for each in query.sources if each.table == table]
        if insert is not None or any(batch.num_rows for batch in changes.before(table, columns)):
            raise FullRefreshNeeded(reason)


def _removed(
    query: ViewQuery, branches: Sequence[Rows], runtime: Runtime, changes: SourceChanges
) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([query.stored_schema.field(name) for name in query.identity])
    for rows in branches:
        if rows.source == Identity():
            continue
        columns, table = rows.source.columns, rows.scan.table
        known = replace(rows, lookups=(), calls=(), unnest=None, conditions=())
        if table in changes.tables:
            gone = flat_stream(rows, changes.before(table, columns), columns)
            for batch in run_rows(runtime, known, rows.identity, gone, {}).batches:
                yield fitted(batch, schema)
        affected = smalls_of(runtime, rows, changes).affected
        if affected:
            source = runtime.scanned(rows, condition_of(rows, affected))
            for batch in run_rows(runtime, known, rows.identity, source, {}, matches=affected).batches:
                yield fitted(batch, schema)


def _added(
    query: ViewQuery, branches: Sequence[Rows], runtime: Runtime, changes: SourceChanges
) -> Iterator[pa.RecordBatch]:
    for rows in branches:
        smalls, table = smalls_of(runtime, rows, changes), rows.scan.table
        again: tuple[Matches, ...] = (*smalls.affected, *repeated_keys(rows, changes))
        if table in changes.tables:
            came = flat_stream(rows, changes.after(table, rows.scan.columns), rows.scan.columns)
            for batch in run_rows(runtime, rows, rows.outputs, came, smalls.now, matches=again, keep="none").batches:
                yield fitted(batch, query.stored_schema)
        if again:
            source = runtime.scanned(rows, condition_of(rows, again))
            for batch in run_rows(runtime, rows, rows.outputs, source, smalls.now, matches=again).batches:
                yield fitted(batch, query.stored_schema)
