"""Columns of the table that no file of a load has. They are an error, so that no column becomes null by mistake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.arrow import computed_of, source_of
from deployer.specs.types.computed import describe_computed
from deployer.tables.conversion.defaults import default_of
from deployer.tables.ingest.rows.field_map import FieldMap, shown_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deployer.tables.ingest.files.model import Source


def unnamed_columns(
    table: pa.Schema, sources: Sequence[Source], names: Mapping[str, Sequence[str]], fields: FieldMap
) -> tuple[str, ...]:
    """Returns the table's columns that have no default and no definition, and that no file (with the fields `names`),
    no folder and no expression gives."""
    named = {fields.column_of(name) for source in sources for name in names[source.path]}
    named |= {fields.column_of(name) for source in sources for name, _ in source.folders}
    named |= fields.selected
    return tuple(field.name for field in table if field.name not in named and may_be_missing(field) is None)


def may_be_missing(field: pa.Field) -> str | None:
    """Returns the text of the default or the definition of a column, which gives values that files do not have; None
    for neither."""
    computed = computed_of(field)
    return default_of(field) or (describe_computed(computed) if computed is not None else None)


def columns_with_values(rows: pa.RecordBatch, columns: Iterable[str]) -> set[str]:
    """Returns those of the columns that have a value in at least one row."""
    there = [name for name in columns if name in rows.schema.names]
    return {name for name in there if rows.column(name).null_count < rows.num_rows}


def columns_without_values(rows: pa.RecordBatch) -> set[str]:
    """Returns the columns that are null in every row."""
    return set(rows.schema.names) - columns_with_values(rows, rows.schema.names)


def missing(columns: Collection[str], table: pa.Schema, address: str) -> InvalidInput:
    """Returns the error for columns that no file has."""
    listed = ", ".join(shown_column(name, source_of(table.field(name))).removeprefix("column ") for name in columns)
    one = len(columns) == 1
    return InvalidInput(
        f"no file and no folder has column{'' if one else 's'} {listed}",
        where=address,
        remedy="add the column to the files, declare `default:` for it, or load nulls with --missing-as-null"
        if one
        else "add the columns to the files, declare `default:` for them, or load nulls with --missing-as-null",
    )
