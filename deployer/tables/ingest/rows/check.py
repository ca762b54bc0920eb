"""Converts a batch of source rows to rows of the table, and reports the rows that cannot be converted.

Loads with and without Spark use this function, so that both refuse the same rows with the same messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.arrow import source_of
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.conversion.casts import castable, lossless
from deployer.tables.conversion.defaults import default_of, defaulted, filled
from deployer.tables.conversion.nulls import forbidden_nulls, relaxed, with_type
from deployer.tables.conversion.text_values import parsed
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem, as_text
from deployer.tables.ingest.rows.computed_values import (
    COMPUTED_REMEDY,
    NEW_ROWS,
    Computing,
    columns_to_compute,
    computed_columns,
    computed_problem,
    computed_values,
)
from deployer.tables.ingest.rows.field_map import FieldMap, shown_column

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FailedRows:
    """Rows in which a column has no value, and the reason."""

    mask: NDArray[np.bool_]
    reason: str


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of a source. `numbers` counts the data rows of a split from 1. `unreadable` has the rows that are not in
    `rows`.

    `lines` has the texts of `rows`, where the source has a line for each row (JSON). After fields are mapped to
    columns, `rows` has the table's columns. Then `fields` has the names in the file of the columns whose names differ,
    `inputs` has the fields that only expressions read, and `failed` has, by column, the rows without a value.
    """

    rows: pa.RecordBatch
    numbers: NDArray[np.int64]
    unreadable: BadRows = BadRows()
    lines: Sequence[bytes] | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    inputs: pa.RecordBatch | None = None
    failed: Mapping[str, FailedRows] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """The rows that fit the table, with its schema and their numbers, and the bad rows, which do not fit."""

    rows: pa.RecordBatch
    bad: BadRows
    numbers: NDArray[np.int64]


def match_columns(
    source: pa.Schema,
    table: pa.Schema,
    *,
    where: str,
    text: bool,
    ignore_extra: bool,
    absent_is_null: bool = False,
    fields: FieldMap = FieldMap(),  # noqa: B008 (it is frozen)
    selected: pa.Schema | None = None,
) -> None:
    """Raises InvalidInput, which lists every problem, where the source's columns cannot become the table's.

    `text` says that values are written as text (CSV, JSON). `absent_is_null` says that rows need not name every column
    (JSON). `source` has the names of the file's fields. `selected` has the columns that expressions compute.
    """
    columns, times = frozenset(table.names), Counter(source.names)
    pairs = ((fields.column_of(name), name) for name in times)
    filled = {column: name for column, name in pairs if column is not None and column in columns}
    problems = []
    mentioned = fields.mentioned
    for name in times:
        if times[name] > 1:
            problems.append(f"column {name!r} occurs twice")
        column = fields.column_of(name)
        if column not in filled and column is not None and not ignore_extra and name not in mentioned:
            problems.append(f"the table has no column {name!r}{_nearest(name, filled, table)}")
    definitions = computed_columns(table)
    for each in table:
        name = filled.get(each.name)
        if each.name in definitions:
            brings = name is not None and not all(pa.types.is_null(kind) for kind in _types_of(source, name))
            if each.name in fields.selected or (brings and not ignore_extra):
                problems.append(computed_problem(each.name, definitions[each.name]))
        elif each.name in fields.selected:
            theirs = each.type if selected is None else selected.field(each.name).type
            if not castable(theirs, each.type, text=text):
                problems.append(f"--select gives column {each.name!r} {theirs}, which cannot become {each.type}")
        elif name is None:
            if not each.nullable and not absent_is_null and not default_of(each):
                problems.append(f"{shown_column(each.name, source_of(each))} is missing, and the table needs it")
        elif times[name] == 1:
            theirs = source.field(name).type
            if not castable(theirs, each.type, text=text):
                shown = shown_column(each.name, name)
                problems.append(f"{shown} is {theirs}, which cannot become {each.type}")
    if problems:
        computed = [problem for problem in problems if "is computed by" in problem]
        others = ", or leave unknown ones out with --ignore-extra" if any("no column" in p for p in problems) else ""
        remedies = ["rename or cast the columns" + others] if len(computed) < len(problems) else []
        remedies += [COMPUTED_REMEDY] if computed else []
        raise InvalidInput("; ".join(problems), where=where, remedy="; ".join(remedies))


def _types_of(source: pa.Schema, name: str) -> list[pa.DataType]:
    return [source.field(place).type for place in source.get_all_field_indices(name)]


def _nearest(name: str, filled: Mapping[str, str], table: pa.Schema) -> str:
    """Returns a remark that names the column that an unknown name may mean; empty where there is none."""
    known = {name: each.name for each in table for name in (each.name, source_of(each)) if name is not None}
    for other in known:
        if other.casefold() == name.casefold():
            return f" (it has {other!r}: names differ in case)"
    near = nearest(name, [n for n, column in known.items() if column not in filled] or [*known])
    return f" (did you mean {near!r}?)" if near else ""


def check(
    source: SourceRows,
    table: pa.Schema,
    row_keys: Sequence[str],
    *,
    text: bool,
    listed: int | None = None,
    absent_is_null: bool = False,
    computing: Computing = NEW_ROWS,
) -> CheckedRows:
    """Returns the rows of `source` that fit the table's schema, in order, and the problems of the other rows.

    All bad rows are counted; problems are listed for the first `listed` of them (None: all). `absent_is_null` says that
    rows need not name every column (JSON): the default of a column then replaces nulls. `computing` says which computed
    columns get new values; values of these columns in the source are ignored.
    """
    arrays: list[Any] = []
    found: list[_Finding] = []
    # The inputs of a default: the source's columns and earlier defaults; all other columns are null.
    known: dict[str, Any] = {}
    if any(map(default_of, table)):
        known = {each.name: pa.nulls(source.rows.num_rows, relaxed(each.type)) for each in table}
    computed = columns_to_compute(table, computing)
    there = frozenset(source.rows.schema.names).difference(computed)
    converted = {
        each.name: _convert(source.rows.column(each.name), each, text=text) for each in table if each.name in there
    }
    known.update((name, array) for name, (array, _) in converted.items())
    for each in table:
        reason = ""
        if each.name in converted:
            values = source.rows.column(each.name)
            array, misfits = converted[each.name]
            if absent_is_null and array.null_count and default_of(each):
                array, misfits = filled(array, misfits, pa.RecordBatch.from_pydict(known), default_of(each))
                known[each.name] = array
        elif expression := default_of(each):
            array, misfits = defaulted(pa.RecordBatch.from_pydict(known), expression, relaxed(each.type))
            values = known[each.name] = array
            reason = f"has no value by its default {expression}"
        else:
            values = array = pa.nulls(source.rows.num_rows, relaxed(each.type))
            misfits = None
        if misfits is not None:
            reason = reason or f"does not fit {type_name(each)}"
            found.append(_Finding(misfits, each.name, reason, values))
        if (failing := source.failed.get(each.name)) is not None:
            found.append(_Finding(failing.mask, each.name, failing.reason, values))
            misfits = failing.mask if misfits is None else misfits | failing.mask
        nulls = forbidden_nulls(array, each.with_nullable(each.nullable and each.name not in row_keys))
        if nulls is not None and misfits is not None:
            nulls = nulls & ~misfits
        if nulls is not None and nulls.any():
            found.append(_Finding(nulls, each.name, _null_reason(each, row_keys), values))
        arrays.append(array)
    if computed:
        found += _compute(arrays, table, computed, source.rows.num_rows, computing)
    bad, numbers = source.unreadable, source.numbers
    if found:
        failed = np.logical_or.reduce([each.mask for each in found])
        bad = bad.joined(_problems(found, failed, source.numbers, listed))
        keep = pa.array(~failed)
        arrays, numbers = [array.filter(keep) for array in arrays], numbers[~failed]
    exact = [with_type(array, each) for array, each in zip(arrays, table, strict=True)]
    rows = pa.RecordBatch.from_arrays(exact, schema=table)
    return CheckedRows(rows, bad if listed is None else bad.first(listed), numbers)


def _compute(
    arrays: list[Any], table: pa.Schema, computed: Collection[str], rows: int, computing: Computing
) -> Iterator[_Finding]:
    """Adds the values of computed columns to `arrays`; yields the rows without a value."""
    known = {name: array for name, array in zip(table.names, arrays, strict=True) if name not in computed}
    for each in computed_values(table, known, rows, computing):
        place = table.get_field_index(each.column)
        arrays[place] = each.values
        if each.failed is not None:
            yield _Finding(each.failed, each.column, each.reason, each.values)
        nulls = forbidden_nulls(each.values, table.field(place))
        if nulls is not None and nulls.any():
            yield _Finding(nulls, each.column, "has a null inside where none may be", each.values)


@dataclass(frozen=True, slots=True)
class _Finding:
    """The rows that cannot be loaded because of one column, for one reason."""

    mask: NDArray[np.bool_]
    column: str
    reason: str
    values: Any


def _problems(
    found: Sequence[_Finding], failed: NDArray[np.bool_], numbers: NDArray[np.int64], listed: int | None
) -> BadRows:
    rows = np.flatnonzero(failed)[:listed]
    problems: list[Problem] = []
    for each in found:
        where = rows[each.mask[rows]]
        values = each.values.take(pa.array(where)).to_pylist()
        problems += [
            Problem(int(number), each.column, each.reason, as_text(value))
            for number, value in zip(numbers[where], values, strict=True)
        ]
    return BadRows.of(problems, int(failed.sum()))


def _convert(values: Any, field: pa.Field, *, text: bool) -> tuple[Any, NDArray[np.bool_] | None]:
    target = relaxed(field.type)
    if values.type.equals(target):
        return values, None
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return parsed(values, target) if text and is_text else lossless(values, target)


def type_name(field: pa.Field) -> str:
    """Returns the type of a column of the table in the form that specs use."""
    from deployer.specs.types.arrow import column_of
    from deployer.specs.types.types import format_type

    return format_type(column_of(field).type)


def _null_reason(field: pa.Field, row_keys: Sequence[str]) -> str:
    if field.name in row_keys:
        return "is null, and it is a row key"
    return "is null, and the column is not null" if not field.nullable else "has a null inside where none may be"
