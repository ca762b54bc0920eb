"""Columns whose values are in the names of the folders of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput
from deployer.tables.conversion.casts import castable
from deployer.tables.conversion.nulls import relaxed
from deployer.tables.conversion.text_values import parsed
from deployer.tables.ingest.rows.check import SourceRows, type_name
from deployer.tables.ingest.rows.field_map import FieldMap

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import Source

FolderColumns = Mapping[str, Any]  #: the value of each column, as an Array with one value


def schema_with_folders(columns: pa.Schema, source: Source, table: pa.Schema, fields: FieldMap) -> pa.Schema:
    """Returns the fields of a file, then those of its folders. Folder fields have the types of the table's columns, or
    text where the table has no such column."""
    filled = {fields.column_of(name) for name in columns.names}
    for name, _ in source.folders:
        column = fields.column_of(name)
        if column not in filled and name not in columns.names:
            known = column in table.names
            columns = columns.append(table.field(column).with_name(name) if known else pa.field(name, pa.string()))
    return columns


def folder_columns(source: Source, table: pa.Schema, fields: FieldMap) -> FolderColumns:
    """Returns the columns of the table whose values are in the names of the folders of a file.

    Raises InvalidInput for a value that does not fit the column's type.
    """
    found: dict[str, Any] = {}
    for name, text in source.folders:
        column = fields.column_of(name)
        if column not in table.names:
            continue
        field = table.field(column)
        kind = relaxed(field.type)
        fits = castable(pa.string(), kind, text=True)
        value, misfits = parsed(pa.array([text], pa.string()), kind) if fits else (None, True)
        if misfits is not None:
            raise InvalidInput(
                f"its folder says {name}={text}, which does not fit {type_name(field)}",
                where=source.name,
                remedy="change the column's type, or rename the folder",
            )
        found[field.name] = value
    return found


def with_folder_columns(rows: Iterator[SourceRows], columns: FolderColumns) -> Iterator[SourceRows]:
    """Yields rows of a file. Columns that the file does not have, or that have no values in it, get the values of the
    folders."""
    for each in rows:
        arrays = dict(zip(each.rows.schema.names, each.rows.columns, strict=True))
        count = each.rows.num_rows
        for name, value in columns.items():
            if name not in arrays or arrays[name].null_count == count:
                arrays[name] = value.take(pa.array(np.zeros(count, np.int64)))
        # Without folder columns, the batch is kept, because it may have no columns but only a number of rows.
        batch = pa.RecordBatch.from_arrays([*arrays.values()], [*arrays]) if columns else each.rows
        yield replace(each, rows=batch)


def check_folder_columns(rows: pa.RecordBatch, columns: FolderColumns, source: Source) -> None:
    """Raises InvalidInput where a column of the file has a different value than its folder."""
    for name, value in columns.items():
        expected = value.to_pylist()[0]
        held = rows.column(name)
        values = held if isinstance(held.type, pa.BaseExtensionType) else pc.unique(held)
        for other in values.to_pylist():
            if other != expected:
                raise InvalidInput(
                    f"column {name!r} in the file has the value {other!r}, and its folder says {expected!r}",
                    where=source.name,
                    remedy="move the file to the right folder, or leave the column out of the file",
                )
