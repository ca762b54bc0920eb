"""Computes the states of groups from rows, merges states, and makes the rows of the view from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import datasketches
import numpy as np
import pyarrow as pa

from deployer.views.query.engine import ROWS_TABLE, Stream, fitted, gathered, run_sql, run_table, select_sql
from deployer.views.query.program import GroupProgram, Key, State, estimate_of, quoted
from deployer.views.query.row_run import Matches, Runtime, run_rows

CHUNK_ROWS = 262_144  #: rows that are aggregated at once
MERGED_ROWS = 1_048_576  #: rows of states that are held before they are merged
SKETCH_BITS = 12  #: the precision (lg k) of HyperLogLog sketches; the standard error is 1.6%
_MERGED = {"rows": "sum", "count": "sum", "sum": "sum", "float sum": "sum", "min": "min", "max": "max"}


def states_of_source(
    runtime: Runtime,
    program: GroupProgram,
    source: Stream,
    smalls: Mapping[str, pa.Table],
    *,
    matches: Sequence[Matches] = (),
    groups: pa.Table | None = None,
) -> pa.Table:
    """Returns the states of the groups of rows of the first table. With `groups`, returns the states of these only.

    The returned table has a column for each key and state, by their names in the program.
    """
    first = next(source.batches, None)
    if first is None:  # common, because most changes only insert; this avoids planning, which takes the most time
        return _no_states(program)
    source = Stream(source.schema, chain((first,), source.batches))
    rows = program.rows
    computed = run_rows(runtime, rows, rows.outputs, source, smalls, matches=matches)
    if groups is not None:
        computed = _of_groups(program, computed, groups)
    parts, held = list[pa.Table](), 0
    for batch in gathered(computed.batches, CHUNK_ROWS):
        part = _sketched(program, run_table(_aggregation(program), {ROWS_TABLE: pa.Table.from_batches([batch])}))
        parts.append(part)
        held += part.num_rows
        if held > MERGED_ROWS:
            parts = [merged(program, parts)]
            held = parts[0].num_rows // 2
    return merged(program, parts)


def _aggregation(program: GroupProgram) -> str:
    columns = [(each.name, quoted(each.name)) for each in program.keys]
    columns += [(each.name, _aggregate(each)) for each in program.states]
    return f"{select_sql(columns, ROWS_TABLE, ())} GROUP BY {', '.join(quoted(each.name) for each in program.keys)}"


def _aggregate(state: State) -> str:
    argument = quoted(state.argument)
    match state.kind:
        case "rows":
            return "count(*)"
        case "sketch":
            return f"array_agg({argument}) FILTER (WHERE {argument} IS NOT NULL)"
        case "float sum":
            return f"sum({argument})"
        case kind:
            return f"{kind}({argument})"


def _of_groups(program: GroupProgram, computed: Stream, groups: pa.Table) -> Stream:
    """Returns the rows that belong to the groups. Null is equal to null."""
    names = [quoted(each.name) for each in program.keys]
    wanted = groups.rename_columns([f"__of{place}" for place in range(len(names))])
    equal = " AND ".join(f'("__of{place}" IS NOT DISTINCT FROM {name})' for place, name in enumerate(names))
    columns = [(name, quoted(name)) for name in computed.schema.names]
    sql = select_sql(columns, f'"__groups" RIGHT SEMI JOIN {quoted(ROWS_TABLE)} ON {equal}', ())
    return run_sql(sql, {ROWS_TABLE: computed, "__groups": wanted})


def merged(program: GroupProgram, parts: Sequence[pa.Table]) -> pa.Table:
    """Returns one row of merged states for each group. Each of the `parts` has one row for each of its groups."""
    parts = [each for each in parts if each.num_rows] or [_no_states(program)]
    if len(parts) == 1:
        return parts[0]
    columns = [(each.name, quoted(each.name)) for each in program.keys]
    columns += [(each.name, merging(each)) for each in program.states]
    keys = ", ".join(quoted(each.name) for each in program.keys)
    found = run_table(f"{select_sql(columns, ROWS_TABLE, ())} GROUP BY {keys}", {ROWS_TABLE: pa.concat_tables(parts)})
    return _sketched(program, found, are_sketches=True)


def merging(state: State) -> str:
    """Returns the SQL that merges several states; sketches become a list."""
    name = quoted(state.name)
    if state.kind == "sketch":
        return f"array_agg({name}) FILTER (WHERE {name} IS NOT NULL)"
    if state.counted:  # a sum without remaining values is null
        return f"CASE WHEN sum({quoted(state.counted)}) > 0 THEN sum({name}) END"
    return f"{_MERGED[state.kind]}({name})"


def _sketched(program: GroupProgram, table: pa.Table, *, are_sketches: bool = False) -> pa.Table:
    """Returns the states with their declared types, and with each list of values or of sketches replaced by one
    sketch."""
    for each in program.states:
        column = table.column(each.name)
        if each.kind == "sketch":
            made = map(union_of, column.to_pylist()) if are_sketches else map(_sketch, _lists(column))
            column = pa.chunked_array([pa.array(made, pa.binary())])
        elif column.type != each.type:
            column = column.cast(each.type)
        table = table.set_column(table.schema.get_field_index(each.name), each.name, column)
    return table


def _lists(column: pa.ChunkedArray) -> Iterator[list[int | str] | None]:
    """Yields the lists of a column as Python lists. Lists of texts are yielded without repeated values.

    For integers, removing repeated values takes longer than adding them to a sketch again. NumPy also converts them to
    Python's integers faster than Arrow.
    """
    for lists in column.chunks:
        values, starts = lists.flatten(), np.cumsum([0, *np.asarray(lists.value_lengths().fill_null(0))])
        for at, is_valid in enumerate(lists.is_valid().to_pylist()):
            own = values.slice(starts[at], starts[at + 1] - starts[at])
            is_plain = pa.types.is_integer(own.type) and not own.null_count
            yield (own.to_numpy().tolist() if is_plain else own.unique().to_pylist()) if is_valid else None


def _sketch(values: list[int | str] | None) -> bytes | None:
    if not values:
        return None
    found = datasketches.hll_sketch(SKETCH_BITS, datasketches.tgt_hll_type.HLL_8)
    deque(map(found.update, values), maxlen=0)
    return bytes(found.serialize_compact())


def union_of(sketches: list[bytes] | None) -> bytes | None:
    """Returns the sketch of all values of several sketches; None for none."""
    if not sketches:
        return None
    return sketches[0] if len(sketches) == 1 else bytes(_joined(sketches).serialize_compact())


def _joined(sketches: Sequence[bytes]) -> datasketches.hll_sketch:
    union = datasketches.hll_union(SKETCH_BITS)
    for each in sketches:
        union.update(datasketches.hll_sketch.deserialize(each))
    return union.get_result(datasketches.tgt_hll_type.HLL_8)


def estimate(sketch: bytes | None) -> int:
    """Returns the estimated number of distinct values, independent of the order in which they were added.

    The own estimate of a sketch depends on that order. The estimate of a union of two sketches does not, so the sketch
    is joined with itself.
    """
    return 0 if sketch is None else round(_joined([sketch, sketch]).get_estimate())


def _no_states(program: GroupProgram) -> pa.Table:
    fields = [pa.field(each.name, each.type) for each in stored_parts(program)]
    return pa.schema(fields).empty_table()


def view_rows(program: GroupProgram, states: pa.Table, schema: pa.Schema, *, whole: bool) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the view for groups, with its stored schema. `whole` says that these are all groups: a query
    without GROUP BY then has one row even if there are no source rows."""
    if program.single and whole and not states.num_rows:
        states = _empty_group(program)
    for each in program.states:
        if each.kind == "sketch":
            estimates = pa.array(map(estimate, states.column(each.name).to_pylist()), pa.int64())
            states = states.append_column(estimate_of(each.name), estimates)
    columns = [(each.name, each.value.sql) for each in program.outputs]
    known = {name for name, _ in columns}
    columns += [(each.stored, quoted(each.name)) for each in stored_parts(program) if each.stored not in known]
    found = run_sql(select_sql(columns, ROWS_TABLE, ()), {ROWS_TABLE: states})
    for batch in found.batches:
        yield fitted(batch, schema)


def stored_parts(program: GroupProgram) -> tuple[Key | State, ...]:
    """Returns the keys and states. Each of them is stored in a column of the view."""
    return (*program.keys, *program.states)


def _empty_group(program: GroupProgram) -> pa.Table:
    counts = {each.name: 0 for each in program.states if each.kind in ("rows", "count")}
    row = {each.name: 0 for each in program.keys} | counts
    return pa.Table.from_pylist([row], _no_states(program).schema)
