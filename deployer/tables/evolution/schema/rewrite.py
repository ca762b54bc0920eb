"""Changes of a column's type: its values are rewritten, into files of their own beside the others.

Lance adds the new column's file to each fragment; the schema's change and the files are one commit. The old values
stay in their files until those are compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.schema.change import (
    drop_column,
    merge_columns,
    stale_readers,
    with_column,
    with_definitions,
    without_column,
)
from deployer.datasets.schema.fields import FieldTree, SchemaField, new_field, next_field_id
from deployer.errors import Refused
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.specs.types.arrow import arrow_field, column_of
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    FixedSizeList,
    ListOf,
    MapOf,
    Struct,
    children,
    format_type,
)
from deployer.tables.conversion.casts import lossless
from deployer.tables.conversion.nested_casts import cast_nested, is_nested_pair
from deployer.tables.conversion.sql_values import named_columns, values_of

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset, LanceOperation

Compute = Callable[[pa.RecordBatch], Any]  #: the values of the new column for a batch of the table's rows


def convert_column(
    dataset: LanceDataset,
    path: Sequence[str],
    after: ColumnType,
    using: str | None = None,
    on_progress: OnProgress = no_progress,
) -> LanceOperation.BaseOperation:
    """Returns the column at `path` as type `after`: its values cast without loss, or what the SQL expression `using`
    gives.

    For a nested field the whole top-level column is rewritten. Raises Refused when a value does not fit.
    """
    top = path[0]
    if using is None:
        _refuse_blobs(dataset, top)
    column = _changed(column_of(dataset.schema.field(top)), path[1:], lambda inner: replace(inner, type=after))
    target = arrow_field(column)
    compute = _cast(top, target.type) if using is None else _expression(using, target.type)
    columns = [top] if using is None else named_columns(dataset.schema, using)
    written, fragments = write_column(dataset, column, compute, columns, on_progress)
    stale = stale_readers(dataset.schema, top, f"{'.'.join(path)} is {format_type(after)}")
    return merge_columns(fragments, with_definitions(_replaced(dataset, top, written), stale))


def drop_field(
    dataset: LanceDataset, path: Sequence[str], on_progress: OnProgress = no_progress
) -> LanceOperation.BaseOperation:
    """Drops a field of a struct. When a data file would then hold no field of the struct, the column is rewritten.

    Files hold the innermost fields only: which structs are null, and how long lists are, is known from those.
    """
    tree = without_column(FieldTree.of(dataset.lance_schema), path)
    held = _innermost(tree.at(path[:-1]))
    in_files = [{field for file in each.metadata.files for field in file.fields} for each in dataset.get_fragments()]
    if all(held & fields for fields in in_files) and not is_read_whole(dataset.schema, path[:-1]):
        return drop_column(dataset, path)
    top = column_of(dataset.schema.field(path[0]))
    column = _changed(top, path[1:-1], lambda parent: _without(parent, path[-1]))
    target = arrow_field(column).type
    written, fragments = write_column(
        dataset, column, lambda rows: _narrowed(rows.column(path[0]), target), [path[0]], on_progress
    )
    return merge_columns(fragments, _replaced(dataset, path[0], written))


def add_field(
    dataset: LanceDataset,
    path: Sequence[str],
    added: Column,
    after: str | None,
    on_progress: OnProgress = no_progress,
) -> LanceOperation.BaseOperation:
    """Adds a field, null in existing rows, where Lance reads structs only whole: the column is rewritten."""
    top = path[0]
    _refuse_blobs(dataset, top)
    column = _changed(column_of(dataset.schema.field(top)), path[1:-1], lambda parent: _with(parent, added, after))
    written, fragments = write_column(dataset, column, _cast(top, arrow_field(column).type), [top], on_progress)
    return merge_columns(fragments, _replaced(dataset, top, written))


def is_read_whole(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Returns whether Lance cannot read what is at `path` from files that lack a field of it: in large lists and
    maps."""
    kinds = [column_of(schema.field(path[0])).type] if path else []
    for name in path[1:]:
        inner = children(kinds[-1])
        named = [each for each in inner if each.name == name or not isinstance(kinds[-1], Struct | MapOf)]
        kinds.append(named[0].type)
    return any(isinstance(kind, MapOf) or (isinstance(kind, ListOf) and kind.large) for kind in kinds)


def _refuse_blobs(dataset: LanceDataset, name: str) -> None:
    if dataset.get_fragments() and _holds_blobs(column_of(dataset.schema.field(name)).type):
        raise Refused(
            f"column {name} holds blobs, which Lance cannot rewrite",
            remedy="add a column for the new values, and drop the field that is to change",
        )


def _holds_blobs(kind: ColumnType) -> bool:
    return isinstance(kind, Blob) or any(_holds_blobs(child.type) for child in children(kind))


def _with(column: Column, added: Column, after: str | None) -> Column:
    assert isinstance(column.type, Struct)  # noqa: S101
    fields = list(column.type.fields)
    fields.insert(next((place + 1 for place, each in enumerate(fields) if each.name == after), 0), added)
    return replace(column, type=Struct(tuple(fields)))


def _innermost(field: SchemaField) -> set[int]:
    return set().union(*map(_innermost, field.children)) if field.children else {field.id}


def _without(column: Column, name: str) -> Column:
    assert isinstance(column.type, Struct)  # noqa: S101
    return replace(column, type=Struct(tuple(field for field in column.type.fields if field.name != name)))


def _replaced(dataset: LanceDataset, name: str, written: SchemaField) -> FieldTree:
    """Returns the schema with another field in the place of the top-level column `name`."""
    tree = FieldTree.of(dataset.lance_schema)
    fields = tuple(written if field.name == name else field for field in tree.fields)
    return replace(tree, fields=fields)


def fill_column(
    dataset: LanceDataset, column: Column, after: str | None, on_progress: OnProgress = no_progress
) -> LanceOperation.BaseOperation:
    """Adds a column behind `after` (None: as the first), with its default in existing rows."""
    compute = _expression(column.default, arrow_field(column).type)
    columns = named_columns(dataset.schema, column.default)
    written, fragments = write_column(dataset, column, compute, columns, on_progress)
    tree = with_column(FieldTree.of(dataset.lance_schema), (), written, after)
    return merge_columns(fragments, tree)


def write_column(
    dataset: LanceDataset,
    column: Column,
    compute: Compute,
    columns: list[str],
    on_progress: OnProgress = no_progress,
) -> tuple[SchemaField, list[Any]]:
    """Writes a new column's values beside each fragment, from its `columns`, and commits nothing.

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
    total, done = dataset.count_rows(), 0
    for fragment in dataset.get_fragments():
        on_progress(Progress(f"writing column {column.name}", done, total))
        done += fragment.count_rows()
        metadata, schema = fragment.merge_columns(batch, columns=columns)
        fragments.append(metadata)
        written = next(each for each in FieldTree.of(schema).fields if each.name == temporary)
    if written is None:
        return new_field(column, next_field_id(dataset)), fragments
    return replace(written, name=column.name), fragments


def _narrowed(values: Any, target: pa.DataType) -> Any:
    """Returns the values without the fields that the target does not have."""
    if is_nested_pair(values.type, target):
        return cast_nested(values, target, _narrowed, leave_out=True)
    return values


def _cast(name: str, target: pa.DataType) -> Compute:
    def cast(rows: pa.RecordBatch) -> Any:
        values, bad = lossless(rows.column(name), target)
        if bad is not None and bad.any():
            raise ValueError(f"{int(bad.sum())} values cannot become {target}")
        return values

    return cast


def _expression(using: str, target: pa.DataType) -> Compute:
    return lambda rows: values_of(rows, using, target)


def _changed(column: Column, path: Sequence[str], change: Callable[[Column], Column]) -> Column:
    """Returns the column with what is at `path` inside of it as `change` makes it."""
    if not path:
        return change(column)
    rest = path[1:]
    match column.type:
        case Struct(fields):
            inner = (_changed(each, rest, change) if each.name == path[0] else each for each in fields)
            return replace(column, type=Struct(tuple(inner)))
        case ListOf(item, large):
            return replace(column, type=ListOf(_changed(item, rest, change), large))
        case FixedSizeList(item, size):
            return replace(column, type=FixedSizeList(_changed(item, rest, change), size))
        case MapOf(key, value):
            if path[0] == "key":
                return replace(column, type=MapOf(_changed(key, rest, change), value))
            return replace(column, type=MapOf(key, _changed(value, rest, change)))
        case _:
            raise Refused(f"column {column.name} has no field {path[0]}")
