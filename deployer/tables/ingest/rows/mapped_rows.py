"""The conversion of a file's rows from the names of its fields to the table's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from deployer.tables.ingest.rows.bad_rows import BadRows
from deployer.tables.ingest.rows.check import FailedRows, SourceRows
from deployer.tables.ingest.rows.field_map import FieldMap
from deployer.tables.ingest.rows.selects import selected


def fields_to_read(names: Sequence[str], table: pa.Schema, fields: FieldMap) -> list[str]:
    """Returns the fields of a file that fill columns of the table or that expressions may name."""
    mentioned, columns = fields.mentioned, frozenset(table.names)
    found = [name for name in names if name in mentioned or fields.column_of(name) in columns]
    return found or [*names[:1]] if fields.selects else found  # an expression without fields has a value for each row


def in_columns(read: SourceRows, table: pa.Schema, fields: FieldMap) -> SourceRows:
    """Returns the rows with the table's columns, from fields and from expressions.

    Several fields may fill a column, because rows of JSON may have different forms. A row with values in two of these
    fields is a bad row.
    """
    if fields.is_trivial:
        return read
    filling: dict[str, list[str]] = {}
    columns = frozenset(table.names)
    for name in read.rows.schema.names:
        column = fields.column_of(name)
        if column is not None and column in columns:
            filling.setdefault(column, []).append(name)
    arrays: dict[str, Any] = {}
    named: dict[str, str] = {}
    failed: dict[str, FailedRows] = {}
    for column, names in filling.items():
        names = [*(name for name in names if name != column), *(name for name in names if name == column)]
        name, arrays[column], both = _one_of(read.rows, names)
        if name != column:
            named[column] = name
        if both is not None:
            failed[column] = FailedRows(both, f"has values in {' and '.join(map(repr, names))}")
    wanted = [select for select in fields.selects if select.column in table.names]
    inputs = None
    if wanted:
        found = selected(read.rows, wanted)
        arrays |= found.values
        failed |= {
            name: FailedRows(mask, "has no value: its --select fails for the row")
            for name, mask in found.failed.items()
        }
        filled = {name for names in filling.values() for name in names}
        inputs = read.rows.select([name for name in read.rows.schema.names if name not in filled])
    rows = pa.RecordBatch.from_arrays([*arrays.values()], [*arrays]) if arrays else read.rows.select([])
    unreadable = _in_columns(read.unreadable, fields)
    return replace(read, rows=rows, unreadable=unreadable, fields=named, inputs=inputs, failed=failed)


def _one_of(rows: pa.RecordBatch, names: Sequence[str]) -> tuple[str, Any, Any]:
    """Returns the name of the first field that has values, the value of each row from any of the fields, and a mask of
    the rows with several values (None: no row)."""
    with_values = [name for name in names if rows.column(name).null_count < rows.num_rows]
    if len(with_values) < 2:
        name = with_values[0] if with_values else names[0]
        return name, rows.column(name), None
    valid = np.stack([np.asarray(rows.column(name).is_valid()) for name in with_values])
    several = valid.sum(axis=0) > 1
    both = pa.concat_arrays([rows.column(name) for name in with_values])
    values = both.take(pa.array(valid.argmax(axis=0) * rows.num_rows + np.arange(rows.num_rows)))
    return with_values[0], values, several if several.any() else None


def _in_columns(bad: BadRows, fields: FieldMap) -> BadRows:
    """Returns the problems with the names of columns in place of the names of their fields."""
    problems = []
    for each in bad.problems:
        column = fields.column_of(each.column) if each.column else None
        if column is not None and column != each.column:
            each = replace(each, column=column, source=each.column)
        problems.append(each)
    return replace(bad, problems=tuple(problems))
