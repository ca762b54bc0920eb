"""The columns of a table whose values pages and reports hide: those that the spec marks, and those computed from
them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from deployer.datasets.recovery.unrecorded import recorded_schema
from deployer.errors import DeployerError
from deployer.live.reader import declared_embedding, view_of
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    children,
)
from deployer.specs.types.view import HIDDEN, ViewSpec
from deployer.state.model.entities import TableState
from deployer.state.reader import StateReader
from deployer.tables.inspect.lineage import view_lineage
from deployer.tables.open_table import find_entry

SHOWN_AS = "hidden"  #: in place of a sensitive value
REASON = "the table has sensitive columns, so the reason is not shown here; `deployer service runs` shows it"


def hidden_columns(store: StateReader, state: TableState) -> frozenset[str]:
    """Returns the columns whose values are not shown at all: sensitive ones, and those that are made of values of
    sensitive columns or fields: computed columns, vectors of an embedding, and columns of views.

    All columns of a view where it is not known of what they are made, and a table that it reads has sensitive columns.
    """
    columns = columns_of(recorded_schema(state))
    found = {column.name for column in columns if column.sensitive}
    found |= _made_in_view(store, state, columns)
    made = {column.name: column.computed.inputs for column in columns if column.computed is not None}
    if (embedding := declared_embedding(state)) is not None:
        made[_top(embedding.vector)] = (embedding.column,)
    protected = found | partly_hidden(columns)
    while more := {
        name for name, inputs in made.items() if name not in found and protected.intersection(map(_top, inputs))
    }:
        found |= more
        protected |= more
    return frozenset(found)


def partly_hidden(columns: Sequence[Column]) -> frozenset[str]:
    """Returns the columns that have a sensitive field inside."""
    return frozenset(column.name for column in columns if _has_sensitive(column.type))


def protected_columns(store: StateReader, state: TableState) -> frozenset[str]:
    """Returns the columns whose values are hidden wholly or in part."""
    return hidden_columns(store, state) | partly_hidden(columns_of(recorded_schema(state)))


def without_sensitive(value: Any, kind: ColumnType) -> Any:
    """Returns a value of Python with `SHOWN_AS` in place of the values of sensitive fields inside."""
    if value is None or not _has_sensitive(kind):
        return value
    match kind:
        case Struct(fields):
            return {
                field.name: SHOWN_AS if field.sensitive else without_sensitive(value.get(field.name), field.type)
                for field in fields
            }
        case ListOf(item) | FixedSizeList(item):
            return [_item(each, item) for each in value]
        case MapOf(key, held):
            return [(_item(name, key), _item(each, held)) for name, each in value]
        case Scalar() | Dictionary() | Blob():
            return value
        case _:
            assert_never(kind)


def without_reasons(state: TableState) -> TableState:
    """Returns the state with `REASON` in place of the reasons of failed runs, which may have values of rows."""
    runs = {
        run_id: replace(run, reason=REASON) if run.reason and run.status == "FAILED" else run
        for run_id, run in state.runs.items()
    }
    return replace(state, runs=runs)


def _item(value: Any, column: Column) -> Any:
    return SHOWN_AS if column.sensitive else without_sensitive(value, column.type)


def _has_sensitive(kind: ColumnType) -> bool:
    return any(child.sensitive or _has_sensitive(child.type) for child in children(kind))


def _top(path: str) -> str:
    return path.partition(".")[0]


def _made_in_view(store: StateReader, state: TableState, columns: Sequence[Column]) -> set[str]:
    view = view_of(state)
    if view is None:
        return set()
    visible = {column.name for column in columns if not column.name.startswith(HIDDEN)}
    try:
        protected = _protected_sources(store, view)
    except DeployerError:  # a source table is missing or broken, so the sensitive columns are unknown
        return visible
    if not any(protected.values()):
        return set()
    lineage = view_lineage(store, view)
    if lineage is None:
        return visible
    return {
        name
        for name in visible
        if any(_top(column) in protected.get(source, ()) for source, column in lineage.get(name, ()))
    }


def _protected_sources(store: StateReader, view: ViewSpec) -> Mapping[str, Collection[str]]:
    tables = store.instance().tables.values()
    return {name: protected_columns(store, store.table(find_entry(tables, name).table_id)) for name in view.tables}
