"""Applies the changes of a live table: of a column as one commit to Lance and one to the log, of the uniqueness of row
keys in the log alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.recovery.rollforward import current
from deployer.datasets.schema.change import (
    add_null_column,
    define_column,
    drop_column,
    note_column,
    rename_column,
    reorder_columns,
    set_nullable,
)
from deployer.errors import Conflict
from deployer.plan import changes as c
from deployer.plan.render.changes import describe
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.specs.types.arrow import DEFAULT, DESCRIPTION, SENSITIVE, SENSITIVE_NOTE, SOURCE, computed_of, source_note
from deployer.specs.types.computed import Computed, succeeding
from deployer.specs.types.types import Column, ColumnType, children
from deployer.state.log.updates import CommitAbandoned, SetTableProperties
from deployer.state.model.declared_properties import UNIQUE
from deployer.state.transactions.tables import to_make_unique
from deployer.tables.evolution.schema.check import refuse_what_fails
from deployer.tables.evolution.schema.commit import commit_schema_change
from deployer.tables.evolution.schema.rewrite import add_field, convert_column, drop_field, fill_column, is_read_whole
from deployer.tables.ingest.commit.unique_keys import PATIENCE, dead_loads, stuck

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset, LanceOperation
    from deployer.plan.changes import SetUnique
    from deployer.specs.model import TableSpec
    from deployer.state.store import StateStore


def apply_column_change(
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    change: c.ColumnChange,
    on_progress: OnProgress = no_progress,
) -> None:
    """Apply one change on the way to `spec`. Raises Refused when the table's rows do not allow it."""

    def operation(dataset: LanceDataset) -> LanceOperation.BaseOperation:
        refuse_what_fails(dataset, change)
        return _operation(dataset, spec, change, on_progress)

    commit_schema_change(store, root, table_id, kind_of(change), operation)


def kind_of(change: c.ColumnChange) -> str:
    """Returns the text that `history` shows for the change: `add column remark`, `rename column delay → late`."""
    return describe(change).partition(":")[0]


def _operation(
    dataset: LanceDataset, spec: TableSpec, change: c.ColumnChange, on_progress: OnProgress
) -> LanceOperation.BaseOperation:
    match change:
        case c.AddColumn(definition=column, after=after) if column.default:
            return fill_column(dataset, column, after, on_progress)
        case c.AddColumn(column=path, definition=column, after=after) if is_read_whole(dataset.schema, path[:-1]):
            return add_field(dataset, path, column, after, on_progress)
        case c.AddColumn(column=path, definition=column, after=after):
            return add_null_column(dataset, path[:-1], column, after)
        case c.DropColumn(column=path):
            return drop_field(dataset, path, on_progress) if len(path) > 1 else drop_column(dataset, path)
        case c.RenameColumn(column=path, after=name):
            return rename_column(dataset, path, name)
        case c.WidenColumn(column=path, after=after):
            return convert_column(dataset, path, after, None, on_progress)
        case c.ConvertColumn(column=path, after=after, using=using):
            return convert_column(dataset, path, after, using, on_progress)
        case c.RelaxNullability(column=path):
            return set_nullable(dataset, path, True)
        case c.TightenNullability(column=path):
            return set_nullable(dataset, path, False)
        case c.ReorderColumns(column=path):
            return reorder_columns(dataset, path, [column.name for column in _declared(spec.columns, path)])
        case c.ChangeColumnDescription(column=path, after=text):
            return note_column(dataset, path, DESCRIPTION, text)
        case c.ChangeColumnDefault(column=path, after=text):
            return note_column(dataset, path, DEFAULT, text)
        case c.ChangeColumnSource(column=path, after=source):
            return note_column(dataset, path, SOURCE, source_note(source))
        case c.ChangeColumnSensitive(column=path, after=is_sensitive):
            return note_column(dataset, path, SENSITIVE, SENSITIVE_NOTE if is_sensitive else "")
        case c.ChangeColumnComputed(column=path, after=computed):
            return define_column(dataset, path[0], _kept(dataset, path[0], computed))
        case _:
            assert_never(change)


def _kept(dataset: LanceDataset, name: str, computed: Computed | None) -> Computed | None:
    """Returns the definition with the identity of the one that is there, where both compute the same values."""
    return None if computed is None else succeeding(computed_of(dataset.schema.field(name)), computed)


def _declared(columns: Sequence[Column], path: c.ColumnPath) -> Sequence[Column]:
    """Returns the fields that the spec has at `path`."""
    for name in path:
        found: ColumnType = next(column.type for column in columns if column.name == name)
        columns = children(found)
    return columns


def declare_unique(store: StateStore, root: str, table_id: str, change: SetUnique) -> None:
    """Makes the row keys unique from now on. Raises Refused when rows have the keys of others, Conflict when other
    loads do not end."""
    until, lost = time.monotonic() + PATIENCE, 0
    while True:
        entry, state = current(store, root, store.instance().tables[table_id], store.table(table_id))
        refuse_what_fails(open_dataset(dataset_location(root, entry), state.lance_version), change)
        declared = SetTableProperties({"declared": {**state.properties.declared, UNIQUE: True}})
        dead = dead_loads(state, time.time_ns() // 1_000_000)
        required = to_make_unique(state.properties.generation, state.lance_version, state.dataset, dead)
        try:
            store.commit(table_id, [*map(CommitAbandoned, dead), declared], required)
        except Conflict as conflict:
            if time.monotonic() > until:
                raise stuck(store.table(table_id), "", conflict, change.address) from conflict
        else:
            return
        lost += 1
        store.pause(lost)
