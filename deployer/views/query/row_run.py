"""Computes the rows of one SELECT from a stream of rows of its first table and from its small tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.functions.calls.caller import Caller
from deployer.functions.model import UDF
from deployer.views.query.engine import ROWS_TABLE, Stream, gathered, run_sql, run_table, select_sql
from deployer.views.query.model import OnFailures, SourceReader
from deployer.views.query.program import Expression, Lookup, Output, Rows, Scan, Unnest, quoted
from deployer.views.query.steps import LIST, CallStep, SqlStep, argument_columns, steps_of

UNNESTED_ROWS = 4096  #: rows whose lists are unnested at a time
MARK = "__mark"


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows whose `values` equal a row of `keys`, column by column. A query keeps or excludes these rows."""

    values: tuple[Expression, ...]
    keys: pa.Table


@dataclass(frozen=True, slots=True)
class Runtime:
    """The environment of a query: the sources, the functions by their names in the query, and the callback for rows for
    which a function failed."""

    reader: SourceReader
    functions: Mapping[str, UDF] = field(default_factory=dict)
    on_failures: OnFailures | None = None

    def scanned(self, rows: Rows, where: str) -> Stream:
        """Returns rows of the first table, with flat names."""
        scan = rows.scan
        return flat_stream(rows, self.reader.read(scan.table, scan.columns, where), scan.columns)

    def small(self, rows: Rows, lookup: Lookup) -> pa.Table:
        """Returns the small table with flat names, without rows that its own condition excludes."""
        scan = lookup.scan
        return small_table(rows, lookup, self.reader.read(scan.table, scan.columns, ""))


def flat_stream(
    rows: Rows, batches: Iterator[pa.RecordBatch], columns: Sequence[str], scan: Scan | None = None
) -> Stream:
    """Returns rows of a table with flat names. The batches may have further columns, in any order."""
    names = {(scan or rows.scan).flat(name): name for name in columns}
    schema = pa.schema([pa.field(flat, rows.types[flat]) for flat in names])

    def renamed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [batch.column(name) for name in names.values()]
            arrays = [a if a.type == f.type else a.cast(f.type) for a, f in zip(arrays, schema, strict=True)]
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return Stream(schema, renamed())


def small_table(rows: Rows, lookup: Lookup, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    """Returns the rows of a small table with flat names, without rows that its own condition excludes."""
    scan = lookup.scan
    stream = flat_stream(rows, batches, scan.columns, scan)
    found = pa.Table.from_batches(stream.batches, stream.schema)
    if not lookup.condition:
        return found
    columns = [(name, quoted(name)) for name in found.schema.names]
    return run_table(select_sql(columns, ROWS_TABLE, [lookup.condition]), {ROWS_TABLE: found})


def run_rows(
    runtime: Runtime,
    rows: Rows,
    outputs: Sequence[Output],
    source: Stream,
    smalls: Mapping[str, pa.Table],
    *,
    matches: Sequence[Matches] = (),
    keep: Literal["any", "none"] = "any",
) -> Stream:
    """Returns the outputs of the rows that match the conditions of the SELECT. `smalls` are its small tables by alias.

    With `matches`, only rows that are in at least one of them are used (`keep` is "any"), or only rows that are in none
    of them ("none").
    """
    steps = steps_of(rows, outputs)
    first = steps[0]
    assert isinstance(first, SqlStep)  # noqa: S101 (as steps_of says)
    used = {name for step in steps if isinstance(step, SqlStep) for each in step.columns for name in each.value.columns}
    used |= {name for step in steps if isinstance(step, SqlStep) for each in step.conditions for name in each.columns}
    needs_lookups = bool(rows.lookups) and (
        any(each.kind == "inner" for each in rows.lookups)
        or any(each.scan.flat(name) in used for each in rows.lookups for name in each.scan.columns)
    )
    tables: dict[str, pa.Table | Stream] = {ROWS_TABLE: source}
    relation, marks = quoted(ROWS_TABLE), list[str]()
    for number, match in enumerate(matches):
        name = f"__match{number}"
        columns = [f"{name}.{place}" for place in range(len(match.values))]
        marked = match.keys.rename_columns(columns).append_column(
            name, pa.array([True] * match.keys.num_rows, pa.bool_())
        )
        tables[name] = marked
        equal = [f"{value.sql} = {quoted(column)}" for value, column in zip(match.values, columns, strict=True)]
        relation = f"({quoted(name)} RIGHT JOIN {relation} ON {' AND '.join(equal)})"
        marks.append(f"{quoted(name)} IS NOT NULL")
    if needs_lookups:
        for number, lookup in enumerate(rows.lookups):
            name = f"__small{number}"
            tables[name] = smalls[lookup.scan.alias]
            equal = [f"{value.sql} = {quoted(lookup.scan.flat(column))}" for value, column in lookup.keys]
            kind = "RIGHT" if lookup.kind == "left" else "INNER"
            relation = f"({quoted(name)} {kind} JOIN {relation} ON {' AND '.join(equal)})"
    chosen = [each.sql for each in first.conditions]
    if matches:
        either = " OR ".join(marks)
        chosen.insert(0, f"({either})" if keep == "any" else f"NOT ({either})")
    sql = select_sql([(each.name, each.value.sql) for each in first.columns], relation, chosen)
    found = run_sql(sql, tables)
    if len(steps) == 1:
        return found
    schema = _output_schema(rows, outputs)
    return Stream(schema, _run_rest(runtime, found.batches, steps[1:], schema))


def _output_schema(rows: Rows, outputs: Sequence[Output]) -> pa.Schema:
    schema = pa.schema([pa.field(name, kind) for name, kind in rows.types.items()])
    columns = [(each.name, each.value.sql) for each in outputs]
    return run_sql(select_sql(columns, ROWS_TABLE, ()), {ROWS_TABLE: schema.empty_table()}).schema


def _run_rest(
    runtime: Runtime, batches: Iterator[pa.RecordBatch], steps: Sequence[SqlStep | CallStep | Unnest], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    with ExitStack() as stack:
        callers = {
            step.call.output: stack.enter_context(
                Caller(runtime.functions[step.call.function], step.call.names or argument_columns(step.call))
            )
            for step in steps
            if isinstance(step, CallStep)
        }
        for batch in gathered(batches):
            found = [batch]
            for step in steps:
                match step:
                    case SqlStep():
                        found = [each for part in found for each in _run_sql_step(step, part)]
                    case CallStep():
                        found = [_called(runtime, step, callers[step.call.output], part) for part in found]
                    case Unnest():
                        parts = (part.slice(at, UNNESTED_ROWS) for part in found for at in _starts(part))
                        found = [pa.concat_batches([_unnested(step, part) for part in parts])] if found else []
            for part in found:
                if part.num_rows:
                    yield part.cast(schema) if part.schema != schema else part


def _starts(batch: pa.RecordBatch) -> range:
    return range(0, max(batch.num_rows, 1), UNNESTED_ROWS)


def _run_sql_step(step: SqlStep, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    if step.is_plain:
        return [batch.select([each.name for each in step.columns])]
    columns = [(each.name, each.value.sql) for each in step.columns]
    sql = select_sql(columns, ROWS_TABLE, [each.sql for each in step.conditions])
    found = run_table(sql, {ROWS_TABLE: pa.Table.from_batches([batch])})
    return list(found.combine_chunks().to_batches())


def _called(runtime: Runtime, step: CallStep, caller: Caller, batch: pa.RecordBatch) -> pa.RecordBatch:
    names = argument_columns(step.call)
    arguments = batch.select(names)
    given = arguments.rename_columns(list(step.call.names)) if step.call.names else arguments
    computed = caller(given)
    if computed.failures and runtime.on_failures is not None:
        runtime.on_failures(step.call.function, batch, computed.failures)
    values = computed.values
    single = not pa.types.is_struct(step.call.type) or not runtime.functions[step.call.function].is_multiple
    result = values.column(0) if single else pa.StructArray.from_arrays(values.columns, fields=list(values.schema))
    kept = batch.drop_columns(names) if names else batch
    return kept.append_column(step.call.output, result)


def _unnested(step: Unnest, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns a row for each item of the lists. An empty list or a null has no row."""
    lists = batch.column(LIST)
    parents = np.asarray(pc.list_parent_indices(lists)).astype(np.int64, copy=False)
    items = pc.list_flatten(lists)
    found = batch.drop_columns([LIST]).take(pa.array(parents))
    for name, part in step.fields:
        values = items if part is None else pc.struct_field(items, part)
        found = found.append_column(name, values)
    if step.position:
        counts = np.bincount(parents, minlength=batch.num_rows)
        starts = np.cumsum(counts) - counts
        found = found.append_column(step.position, pa.array(np.arange(len(parents)) - starts[parents] + 1, pa.int64()))
    return found
