"""The effect of changes of the sources on a group view.

The states of a group are updated from added and removed rows where possible, and are computed again otherwise.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from deployer.views.query.affected import condition_of, smalls_of
from deployer.views.query.engine import ROWS_TABLE, fitted, run_table, select_sql
from deployer.views.query.group_run import merged, merging, states_of_source, stored_parts, union_of, view_rows
from deployer.views.query.model import FullRefreshNeeded, SourceChanges, StoredView, ViewDelta, ViewQuery
from deployer.views.query.program import Expression, GroupProgram, State, quoted
from deployer.views.query.row_run import Matches, Runtime, flat_stream

_AGAIN, _STORED = "__again", "__stored"
_SUBTRACTED = ("rows", "count", "sum")


def group_delta(
    query: ViewQuery, program: GroupProgram, runtime: Runtime, changes: SourceChanges, view: StoredView
) -> ViewDelta:
    """Returns the delta of the changed groups: all of them are removed, and the groups that still have rows are
    added."""
    came, went = _contributions(program, runtime, changes)
    if not came.num_rows and not went.num_rows:
        return ViewDelta(iter(()), iter(()))
    keys = [each.name for each in program.keys]
    touched = merged(program, [came, went]).select(keys)
    stored = _stored_states(program, view, touched.rename_columns(list(query.identity)))
    states = _combined(program, stored, came, went)
    again = states.filter(states.column(_AGAIN)).select(keys)
    kept = states.filter(pc.invert(states.column(_AGAIN))).select([each.name for each in stored_parts(program)])
    if again.num_rows:
        computed = _again(program, runtime, changes, again)
        kept = pa.concat_tables([kept, computed.cast(kept.schema)])
    rows = kept.column(program.states[0].name)
    if (pc.min(rows).as_py() or 0) < 0:
        raise FullRefreshNeeded("the view has fewer rows of some groups than were removed")
    if not program.single:
        kept = kept.filter(pc.greater(rows, 0))
    schema = pa.schema([query.stored_schema.field(name) for name in query.identity])
    old = stored.select(keys).rename_columns(list(query.identity))
    removed = (fitted(batch, schema) for batch in old.to_batches())
    come = view_rows(program, kept, query.stored_schema, whole=program.single)
    return ViewDelta(removed, come, all_return=kept.num_rows == states.num_rows)


def _contributions(program: GroupProgram, runtime: Runtime, changes: SourceChanges) -> tuple[pa.Table, pa.Table]:
    """Returns the states of the rows that are added to groups, and of the rows that are removed from groups.

    First, changed rows of the first table are joined with the former small tables. Then all rows that are joined with
    changed rows of small tables are removed with the former small rows, and added with the new small rows.
    """
    rows, table = program.rows, program.rows.scan.table
    smalls = smalls_of(runtime, rows, changes)
    came, went = list[pa.Table](), list[pa.Table]()
    if table in changes.tables:
        after = flat_stream(rows, changes.after(table, rows.scan.columns), rows.scan.columns)
        before = flat_stream(rows, changes.before(table, rows.scan.columns), rows.scan.columns)
        came.append(states_of_source(runtime, program, after, smalls.then))
        went.append(states_of_source(runtime, program, before, smalls.then))
    if smalls.affected:
        condition = condition_of(rows, smalls.affected)
        for tables, found in ((smalls.now, came), (smalls.then, went)):
            source = runtime.scanned(rows, condition)
            found.append(states_of_source(runtime, program, source, tables, matches=smalls.affected))
    return merged(program, came), merged(program, went)


def _stored_states(program: GroupProgram, view: StoredView, identities: pa.Table) -> pa.Table:
    """Returns the states of the changed groups that the view stores."""
    parts = stored_parts(program)
    schema = pa.schema([pa.field(each.name, each.type) for each in parts])
    batches = list[pa.RecordBatch]()
    for batch in view.rows(identities, [each.stored for each in parts]):
        arrays = [batch.column(each.stored) for each in parts]
        arrays = [a if a.type == f.type else a.cast(f.type) for a, f in zip(arrays, schema, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _combined(program: GroupProgram, stored: pa.Table, came: pa.Table, went: pa.Table) -> pa.Table:
    """Returns the states of the changed groups. The column `__again` says whether they have to be computed from the
    source."""
    parts = [_part(program, stored, "stored"), _part(program, came, "came"), _part(program, went, "went")]
    columns = [(each.name, quoted(each.name)) for each in program.keys]
    columns += [(each.name, merging(each)) for each in program.states]
    reasons = [reason for each in program.states if (reason := _needs_again(each))]
    columns.append((_AGAIN, f"coalesce({' OR '.join(reasons)}, false)" if reasons else "false"))
    keys = ", ".join(quoted(each.name) for each in program.keys)
    sql = f"{select_sql(columns, ROWS_TABLE, ())} GROUP BY {keys}"
    found = run_table(sql, {ROWS_TABLE: pa.concat_tables(parts)})
    for each in program.states:
        place = found.schema.get_field_index(each.name)
        if each.kind == "sketch":
            sketches = map(union_of, found.column(place).to_pylist())
            found = found.set_column(place, each.name, pa.chunked_array([pa.array(sketches, pa.binary())]))
        elif found.schema.field(place).type != each.type:
            found = found.set_column(place, each.name, found.column(place).cast(each.type))
    return found


def _part(program: GroupProgram, states: pa.Table, side: Literal["stored", "came", "went"]) -> pa.Table:
    """Returns states in the form in which they are summed.

    States of removed rows ("went") are negated where they can be subtracted. Other states of removed rows are in
    separate columns. The column `__stored` says whether the view stores the state.
    """
    count = states.num_rows
    columns = {each.name: states.column(each.name) for each in stored_parts(program)}
    for each in program.states:
        values = columns[each.name]
        if each.kind not in _SUBTRACTED:
            columns[_gone(each)] = values if side == "went" else pa.nulls(count, values.type)
        if side == "went":
            columns[each.name] = pc.negate(values) if each.kind in _SUBTRACTED else pa.nulls(count, values.type)
    columns[_STORED] = pa.array([side == "stored"] * count, pa.bool_())
    return pa.table(columns)


def _gone(state: State) -> str:
    return f"{state.name}_gone"


def _needs_again(state: State) -> str:
    """Returns the SQL condition under which a state cannot be computed from the states of added and removed rows; empty
    where it always can."""
    gone, name = quoted(_gone(state)), quoted(state.name)
    stored = f"FILTER (WHERE {quoted(_STORED)})"
    match state.kind:
        case "float sum" | "sketch":
            return f"count({gone}) > 0"
        case "min":
            return f"(count({gone}) > 0 AND NOT coalesce(min({gone}) > min({name}) {stored}, false))"
        case "max":
            return f"(count({gone}) > 0 AND NOT coalesce(max({gone}) < max({name}) {stored}, false))"
        case _:
            return ""


def _again(program: GroupProgram, runtime: Runtime, changes: SourceChanges, groups: pa.Table) -> pa.Table:
    """Returns the states of some groups, computed from all rows of the source."""
    rows = program.rows
    smalls = {each.scan.alias: runtime.small(rows, each) for each in rows.lookups}
    plain = [
        Matches((Expression(quoted(rows.scan.flat(each.source))),), groups.select([each.name]))
        for each in program.keys
        if each.source and not groups.column(each.name).null_count
    ]
    source = runtime.scanned(rows, condition_of(rows, plain[:1]))
    return states_of_source(runtime, program, source, smalls, groups=groups)
