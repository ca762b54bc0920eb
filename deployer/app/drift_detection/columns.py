"""Writes the drift of a column into its spec, including nested fields and everything that names the column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from deployer.errors import Position
from deployer.plan import changes as c
from deployer.specs.declarations.indexes import index_to_json
from deployer.specs.editing.edits import SpecEdits
from deployer.specs.editing.nodes import Uneditable
from deployer.specs.editing.write import column_document, type_document
from deployer.specs.model import TableSpec
from deployer.specs.types.computed import computed_document
from deployer.specs.types.types import Column, children

_PROPERTIES: Mapping[type, str] = {
    c.WidenColumn: "type",
    c.ConvertColumn: "type",
    c.RelaxNullability: "nullable",
    c.TightenNullability: "nullable",
    c.ChangeColumnDescription: "description",
    c.ChangeColumnSensitive: "sensitive",
    c.ChangeColumnDefault: "default",
    c.ChangeColumnSource: "source",
    c.ChangeColumnComputed: "computed",
}


def edit_column(
    edits: SpecEdits, change: c.ColumnChange, declared: TableSpec, live: TableSpec, names: Mapping[str, str]
) -> None:
    """Edits the column, or the nested field. `names` has the column's name in the specs by its live name.

    Raises Uneditable, with the position, for a change that no edit can express.
    """
    at = _place(declared, change, names)
    holder = change.column if isinstance(change, c.ReorderColumns) else change.column[:-1]
    if holder and (above := edits.text_above(at, holder)):
        edits.set_column(at, above, "type", type_document(_live(live, above).type))
        return
    match change:
        case c.ReorderColumns(column=parent):
            edits.order_columns(at, parent, [column.name for column in _inside(live, parent)])
        case c.AddColumn(column=added, definition=definition, after=after):
            edits.add_column(at, added[:-1], column_document(definition), after)
        case c.DropColumn(column=dropped):
            edits.drop_column(at, dropped)
        case c.RenameColumn(column=renamed, after=name):
            _rename(edits, at, declared, renamed, name)
        case _:
            column = _live(live, change.column)
            edits.set_column(at, change.column, *_property(change, column))


def _property(change: c.ColumnChange, column: Column) -> tuple[str, object]:
    """Returns the property that a change sets, and its new value (None: the property is removed)."""
    match change:
        case c.WidenColumn() | c.ConvertColumn():
            return "type", type_document(column.type)
        case c.RelaxNullability() | c.TightenNullability():
            return "nullable", None if column.nullable else False
        case c.ChangeColumnDescription():
            return "description", column.description or None
        case c.ChangeColumnDefault():
            return "default", column.default or None
        case c.ChangeColumnSensitive():
            return "sensitive", column.sensitive or None
        case c.ChangeColumnSource():
            return "source", column.source
        case c.ChangeColumnComputed():
            return "computed", None if column.computed is None else computed_document(column.computed)
        case _:
            raise TypeError(type(change).__name__)  # the other changes edit lists


def _rename(edits: SpecEdits, at: Position, declared: TableSpec, path: c.ColumnPath, name: str) -> None:
    """Renames the column wherever the table's document has the old name."""
    for column in declared.columns:
        for sql in (column.default, column.using or ""):
            if re.search(rf"(?<!\w){re.escape(path[0])}(?!\w)", sql):
                where = declared.sources.get(f"columns.{column.name}", at)
                remedy = f"write the new name {'.'.join((*path[:-1], name))} there by hand, and in the column"
                raise Uneditable(f"an expression of column {column.name} names it: {sql}", where=where, remedy=remedy)
    edits.set_column(at, path, "name", name)
    if len(path) == 1:
        for keys in ("row_keys", "sort_keys"):
            if path[0] in getattr(declared, keys):
                edits.rename_in_list(declared.sources.get(keys, declared.sources[""]), keys, path[0], name)
    before, after = ".".join(path), ".".join((*path[:-1], name))
    for index in declared.indexes:
        columns = [_replaced(column, before, after) for column in index.columns]
        if columns != [*index.columns]:
            where = declared.sources.get(f"indexes.{index.name}", declared.sources[""])
            edits.set_index(where, index.name, {**index_to_json(index), "columns": columns})


def _replaced(path: str, before: str, after: str) -> str:
    return after + path[len(before) :] if path == before or path.startswith(f"{before}.") else path


def _live(live: TableSpec, path: c.ColumnPath) -> Column:
    inside, found = live.columns, None
    for name in path:
        found = next((column for column in inside if column.name == name), None)
        if found is None:
            raise Uneditable(f"column {'.'.join(path)} does not exist in the lake any more", remedy="run `drift` again")
        inside = children(found.type)
    assert found is not None  # noqa: S101 -- a path is never empty
    return found


def _inside(live: TableSpec, parent: c.ColumnPath) -> tuple[Column, ...]:
    return children(_live(live, parent).type) if parent else live.columns


def _place(declared: TableSpec, change: c.ColumnChange, names: Mapping[str, str]) -> Position:
    """Returns the position of the property, the field or the column; for an added column, that of the columns."""
    found = (declared.sources[key] for key in _keys(change, names) if key in declared.sources)
    return next(found, declared.sources[""])


def _keys(change: c.ColumnChange, names: Mapping[str, str]) -> Iterator[str]:
    path = change.column
    if path:
        path = (names.get(path[0], path[0]), *path[1:])
        if property_name := _PROPERTIES.get(type(change)):
            yield f"columns.{'.'.join(path)}.{property_name}"
        yield f"columns.{'.'.join(path)}"
        yield f"columns.{path[0]}"
    yield "columns"
