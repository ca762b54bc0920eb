"""Changes of a column's type: its values are written anew, into files of their own beside the others.

Lance adds the new column's file to each fragment; the schema's change and the files are one commit. The old values
stay in their files until those are compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.errors import Refused
from deployer.specs.arrow import arrow_field, column_of
from deployer.specs.types import Column, ColumnType, FixedSizeList, ListOf, MapOf, Struct
from deployer.tables.ingest.casts import lossless
from deployer.tables.schema_change import with_column
from deployer.tables.schema_fields import FieldTree, SchemaField, new_field, next_field_id
from deployer.tables.sql_value import values_of

if TYPE_CHECKING:
    import lance

Compute = Callable[[pa.RecordBatch], Any]  #: the values of the new column for a batch of the table's rows


def convert_column(
    dataset: lance.LanceDataset, path: Sequence[str], after: ColumnType, using: str | None = None
) -> lance.LanceOperation.BaseOperation:
    """The column at `path` as type `after`: its values cast without loss, or what the SQL expression `using` gives.

    Of a nested field the whole top-level column is written anew. Raises Refused when a value does not fit.
    """
    import lance

    top = path[0]
    column = _retyped(column_of(dataset.schema.field(top)), path[1:], after)
    target = arrow_field(column)
    compute = _cast(top, target.type) if using is None else _expression(using, target.type)
    written, fragments = write_column(dataset, column, compute, [top] if using is None else None)
    tree = FieldTree.of(dataset.lance_schema)
    old = tree.at(path[:1])
    place = tree.fields.index(old)
    fields = (*tree.fields[:place], written, *tree.fields[place + 1 :])
    return lance.LanceOperation.Merge(fragments, replace(tree, fields=fields).to_lance())


def fill_column(dataset: lance.LanceDataset, column: Column, after: str | None) -> lance.LanceOperation.BaseOperation:
    """A new column behind `after` (None: as the first), with its default in existing rows."""
    import lance

    compute = _expression(column.default, arrow_field(column).type)
    written, fragments = write_column(dataset, column, compute, None)
    tree = with_column(FieldTree.of(dataset.lance_schema), (), written, after)
    return lance.LanceOperation.Merge(fragments, tree.to_lance())


def write_column(
    dataset: lance.LanceDataset, column: Column, compute: Compute, columns: list[str] | None
) -> tuple[SchemaField, list[Any]]:
    """Writes a new column's values beside each fragment, from its `columns` (None: all), and commits nothing.

    Gives the column's field with the ids that the files have, and the fragments as they then are.
    """
    field = arrow_field(column)
    temporary = "_new"
    while temporary in dataset.schema.names:
        temporary += "_"

    def batch(rows: pa.RecordBatch) -> pa.RecordBatch:
        try:
            values = compute(rows)
        except ValueError as failure:
            raise Refused(f"column {column.name} cannot be computed: {failure}") from failure
        return pa.RecordBatch.from_arrays([values], schema=pa.schema([field.with_name(temporary)]))

    fragments = []
    written: SchemaField | None = None
    for fragment in dataset.get_fragments():
        metadata, schema = fragment.merge_columns(batch, columns=columns)
        fragments.append(metadata)
        written = next(each for each in FieldTree.of(schema).fields if each.name == temporary)
    if written is None:
        return new_field(column, next_field_id(dataset)), fragments
    return replace(written, name=column.name), fragments


def _cast(name: str, target: pa.DataType) -> Compute:
    def cast(rows: pa.RecordBatch) -> Any:
        values, bad = lossless(rows.column(name), target)
        if bad is not None and bad.any():
            raise ValueError(f"{int(bad.sum())} values are no {target}")
        return values

    return cast


def _expression(using: str, target: pa.DataType) -> Compute:
    return lambda rows: values_of(rows, using, target)


def _retyped(column: Column, path: Sequence[str], after: ColumnType) -> Column:
    """The column with another type at `path` inside of it."""
    if not path:
        return replace(column, type=after)
    rest = path[1:]
    match column.type:
        case Struct(fields):
            inner = (_retyped(each, rest, after) if each.name == path[0] else each for each in fields)
            return replace(column, type=Struct(tuple(inner)))
        case ListOf(item, large):
            return replace(column, type=ListOf(_retyped(item, rest, after), large))
        case FixedSizeList(item, size):
            return replace(column, type=FixedSizeList(_retyped(item, rest, after), size))
        case MapOf(key, value):
            if path[0] == "key":
                return replace(column, type=MapOf(_retyped(key, rest, after), value))
            return replace(column, type=MapOf(key, _retyped(value, rest, after)))
        case _:
            raise Refused(f"column {column.name} has no field {path[0]}")
