"""Finds the rows of a query's first table that are affected by changes of its small tables or by repeated keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from deployer.tables.read.predicate import speaks_sql, sql_literal
from deployer.views.query.engine import ROWS_TABLE, run_table, select_sql
from deployer.views.query.model import SourceChanges
from deployer.views.query.parsing.parse import source_condition, source_name
from deployer.views.query.program import Expression, Lookup, Rows, quoted
from deployer.views.query.row_run import Matches, Runtime, flat_stream, small_table

NAMED_KEYS = 1000  #: the largest number of values that a condition lists; for more values, it has their range


@dataclass(frozen=True, slots=True)
class Smalls:
    """The small tables of a SELECT by alias, with their current and former rows, and the rows of the first table that
    are joined with a changed row."""

    now: Mapping[str, pa.Table] = field(default_factory=dict)
    then: Mapping[str, pa.Table] = field(default_factory=dict)
    affected: tuple[Matches, ...] = ()


def smalls_of(runtime: Runtime, rows: Rows, changes: SourceChanges) -> Smalls:
    """Returns the small tables of a SELECT, and the rows that their changes affect."""
    now, then = dict[str, pa.Table](), dict[str, pa.Table]()
    touched = dict[str, pa.Table]()
    for lookup in rows.lookups:
        alias, table = lookup.scan.alias, lookup.scan.table
        now[alias] = then[alias] = runtime.small(rows, lookup)
        if table not in changes.tables:
            continue
        before = small_table(rows, lookup, changes.before(table, lookup.scan.columns))
        after = small_table(rows, lookup, changes.after(table, lookup.scan.columns))
        touched[alias] = distinct(pa.concat_tables([_keys(lookup, before), _keys(lookup, after)]))
        then[alias] = pa.concat_tables([_without(lookup, now[alias], _keys(lookup, after)), before])
    for lookup in reversed(rows.lookups):  # affected rows of another small table affect the rows joined with them
        if lookup.driver == rows.scan.alias or lookup.scan.alias not in touched:
            continue
        [parent] = [each for each in rows.lookups if each.scan.alias == lookup.driver]
        own = [_joined_keys(parent, lookup, each[lookup.driver], touched[lookup.scan.alias]) for each in (now, then)]
        known = [touched[lookup.driver]] if lookup.driver in touched else []
        touched[lookup.driver] = distinct(pa.concat_tables([*known, *own]))
    affected = tuple(
        Matches(tuple(value for value, _ in each.keys), touched[each.scan.alias])
        for each in rows.lookups
        if each.driver == rows.scan.alias and each.scan.alias in touched and touched[each.scan.alias].num_rows
    )
    return Smalls(now, then, affected)


def repeated_keys(rows: Rows, changes: SourceChanges) -> tuple[Matches, ...]:
    """Returns the keys of deleted rows, where other rows may have the same keys: all rows with these keys are
    affected."""
    if rows.source.unique or not rows.source.columns or rows.scan.table not in changes.tables:
        return ()
    stream = flat_stream(rows, changes.before(rows.scan.table, rows.source.columns), rows.source.columns)
    keys = distinct(pa.Table.from_batches(stream.batches, stream.schema))
    values = tuple(Expression(quoted(name), frozenset((name,))) for name in keys.schema.names)
    return (Matches(values, keys),) if keys.num_rows else ()


def condition_of(rows: Rows, matches: Sequence[Matches]) -> str:
    """Returns a condition on the first table that is true for all matching rows that the query needs; empty where none
    can be derived."""
    either = [_condition(rows, each) for each in matches]
    own = source_condition(rows)
    if not either or not all(either):
        return own
    matching = " OR ".join(either)
    return f"{own} AND ({matching})" if own else matching


def _condition(rows: Rows, match: Matches) -> str:
    names = {quoted(rows.scan.flat(name)): name for name in rows.scan.columns}
    parts = list[str]()
    for value, column in zip(match.values, match.keys.columns, strict=True):
        name, kind = names.get(value.sql), column.type
        if name is not None and rows.types[rows.scan.flat(name)] == kind:
            parts += _among(source_name(name), column)
    return f"({' AND '.join(parts)})" if parts else ""


def _among(name: str, column: pa.ChunkedArray) -> list[str]:
    """Returns the SQL conditions that hold where a column has one of the values; an empty list for types without
    literals."""
    kind, values = column.type, column.unique().drop_null()
    if not speaks_sql(kind) or not len(values):
        return []
    plain = pa.int64() if pa.types.is_timestamp(kind) else pa.int32() if pa.types.is_date32(kind) else None
    ordered = values.take(pc.sort_indices(values)) if len(values) > NAMED_KEYS else values
    if len(values) > NAMED_KEYS:
        ordered = pa.concat_arrays([ordered.slice(0, 1), ordered.slice(len(ordered) - 1, 1)])
    given = ordered.cast(plain) if plain is not None else ordered
    literals = [sql_literal(kind, str(each) if pa.types.is_decimal(kind) else each) for each in given.to_pylist()]
    if len(values) > NAMED_KEYS:
        return [f"{name} >= {literals[0]}", f"{name} <= {literals[1]}"]
    return [f"{name} IN ({', '.join(literals)})"]


def distinct(table: pa.Table) -> pa.Table:
    """Returns the distinct rows."""
    columns = [(name, quoted(name)) for name in table.schema.names]
    names = ", ".join(quoted(name) for name in table.schema.names)
    return run_table(f"{select_sql(columns, ROWS_TABLE, ())} GROUP BY {names}", {ROWS_TABLE: table})


def _keys(lookup: Lookup, table: pa.Table) -> pa.Table:
    return table.select([lookup.scan.flat(column) for _, column in lookup.keys])


def _without(lookup: Lookup, table: pa.Table, keys: pa.Table) -> pa.Table:
    """Returns the rows of a small table whose keys are not in `keys`."""
    names = [lookup.scan.flat(column) for _, column in lookup.keys]
    others = keys.rename_columns([f"__k{place}" for place in range(len(names))])
    equal = " AND ".join(f'"__k{place}" = {quoted(name)}' for place, name in enumerate(names))
    columns = [(name, quoted(name)) for name in table.schema.names]
    sql = select_sql(columns, f'"__keys" RIGHT ANTI JOIN {quoted(ROWS_TABLE)} ON {equal}', ())
    return run_table(sql, {ROWS_TABLE: table, "__keys": others}).cast(table.schema)


def _joined_keys(parent: Lookup, child: Lookup, table: pa.Table, touched: pa.Table) -> pa.Table:
    """Returns the keys of the rows of the small table `parent` that are joined with changed rows of `child`."""
    others = touched.rename_columns([f"__k{place}" for place in range(touched.num_columns)])
    equal = " AND ".join(f'"__k{place}" = {value.sql}' for place, (value, _) in enumerate(child.keys))
    names = [parent.scan.flat(column) for _, column in parent.keys]
    columns = [(name, quoted(name)) for name in names]
    sql = select_sql(columns, f'"__keys" RIGHT SEMI JOIN {quoted(ROWS_TABLE)} ON {equal}', ())
    return run_table(sql, {ROWS_TABLE: table, "__keys": others})
