"""Descriptions of tables, from the state store alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.errors import lance_errors
from deployer.datasets.files.local_files import require_whole
from deployer.datasets.indexes.read import live_indexes
from deployer.datasets.recovery.as_recorded import as_recorded
from deployer.errors import DeployerError
from deployer.live.freshness import freshness_of
from deployer.live.model import Unreadable
from deployer.live.reader import active_tables, has_unique_keys, live_table, retained_changes, unreadable, view_of
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import format_type
from deployer.specs.types.view import HIDDEN, ViewSpec, staleness_text
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.keys import decode_key
from deployer.state.reader import StateReader
from deployer.tables.inspect.computed import ComputedColumnInfo, computed_infos
from deployer.tables.inspect.lineage import view_lineage
from deployer.tables.inspect.sensitive import protected_columns
from deployer.tables.inspect.versions import foreign_write_at, last_rows_at
from deployer.tables.layout.indexes.build import IndexInfo, index_infos
from deployer.tables.layout.partitions.sizes import sizes_of
from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class TableSummary:
    """One line of `deployer tables`.

    `last_write` is the time of the last change of rows by deployer or others; None for never.
    """

    name: str
    rows: int
    bytes: int
    files: int
    leaves: int
    last_write: dt.datetime | None
    online: bool


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column, its canonical type and whether it is a row key or sort key (`row key 1`, `sort key 2` or empty).

    `source` is the name that it has in files; None: its own. `sensitive`: pages and reports hide its values, or some of
    them, because the spec says so or because it is computed from such values.
    """

    name: str
    type: str
    nullable: bool
    key: str
    description: str
    source: str | None = None
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class LeafInfo:
    """A leaf partition: keys from `lower` (None: the least) to below `upper` (None: no end), and what it holds.

    `across` are about the rows of files that reach into it and into others.
    """

    partition: str
    lower: tuple[Any, ...] | None
    upper: tuple[Any, ...] | None
    rows: int
    bytes: int
    files: int
    across: int = 0


@dataclass(frozen=True, slots=True)
class TableDescription:
    """Everything about one table. `unplaced_files` are across leaves: other programs added them, or leaves were split
    later."""

    summary: TableSummary
    description: str
    columns: tuple[ColumnInfo, ...]
    row_keys: tuple[str, ...]
    sort_keys: tuple[str, ...]
    leaves: tuple[LeafInfo, ...]
    unplaced_files: int
    location: str
    storage: dict[str, Any]
    tags: dict[str, Any]
    deletion_protection: bool
    table_id: str
    generation: int
    lance_version: int
    state_version: int
    indexes: tuple[IndexInfo, ...] = ()
    dataset: int = 1  #: the number of its Lance dataset: a rewrite makes the next
    retired: tuple[str, ...] = ()  #: where datasets before a rewrite are kept
    unique: bool = False  #: no two rows may have the same row keys
    computed: tuple[ComputedColumnInfo, ...] = ()
    retain_changes: str | None = None  #: how long changes can be read; None: as long as versions are kept
    view: ViewInfo | None = None  #: how the rows of a view are made, and how current they are


@dataclass(frozen=True, slots=True)
class ViewInfo:
    """The query of a view, the functions that it calls (as their sources), how late it may be, and how late it is.

    `lineage` names, for each column, the tables' columns of which it is made, and the indexes on it. `unknown` says
    why it is unknown how current the view is.
    """

    query: str
    functions: dict[str, str]
    max_staleness: str | None
    refreshed_at: dt.datetime | None
    behind: dict[str, dt.datetime]
    lineage: tuple[ColumnLineage, ...]
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """The origin of a column of a view, as `database.table.column`, and the indexes that it goes into."""

    column: str
    sources: tuple[str, ...]
    indexes: tuple[str, ...]


def summaries(
    store: StateReader, root: str, on_progress: OnProgress = no_progress
) -> tuple[list[TableSummary], list[Unreadable]]:
    """Returns all active tables by name, with all that Lance has, and those that cannot be read."""
    active = active_tables(store, on_progress=on_progress)
    found: list[TableSummary] = []
    failed = list(active.unreadable.values())
    for entry, state in counted(active.found.values(), len(active.found), "reading tables", "tables", on_progress):
        try:
            found.append(summary_of(store, root, entry, state))
        except DeployerError as error:
            failed.append(unreadable(entry, error))
    return sorted(found, key=lambda each: each.name), sorted(failed, key=lambda each: each.address)


def summary_of(store: StateReader, root: str, entry: TableEntry, state: TableState) -> TableSummary:
    """Returns the line of one active table, with all that Lance has. Raises DeployerError for one that cannot be
    read."""
    with lance_errors(dataset_location(root, entry)):
        seen = as_recorded(store, root, entry, state)
        require_whole(dataset_location(root, seen.entry), seen.state.files.bytes, seen.manifest)
        live_table(seen.entry, seen.state)  # raises Corrupt where the record is not that of a table
        return _summary(seen.entry, seen.state, root)


def _summary(entry: TableEntry, state: TableState, root: str) -> TableSummary:
    files = state.files
    return TableSummary(
        entry.full_name,
        files.rows,
        files.bytes,
        files.count,
        len(state.leaves()),
        _last_write(entry, state, root),
        state.properties.online,
    )


def _last_write(entry: TableEntry, state: TableState, root: str) -> dt.datetime | None:
    """Opens the dataset only if it has versions above that of the last load or change of rows."""
    jobs = [job for job in state.jobs.values() if job.added or job.counts]
    last = max(jobs, key=lambda job: job.at, default=None)
    at = None if last is None else dt.datetime.fromtimestamp(last.at / 1000, dt.UTC)
    rewritten = next((each.since for each in state.datasets if each.status == "current"), 0)
    known = last.lance_version if last is not None and last.at >= rewritten else 0
    if known == state.lance_version:
        return at
    if at is None and not state.files.rows and state.lance_version <= 1:
        return None
    dataset = open_dataset(dataset_location(root, entry), state.lance_version)
    if at is None and state.files.rows:  # other programs wrote all of them, for example before an import
        return foreign_write_at(dataset, known) or last_rows_at(dataset)
    return foreign_write_at(dataset, known) or at


def describe(table: ReadTable) -> TableDescription:
    """Returns the table as the opened state has it."""
    state, properties = table.state, table.state.properties
    location = dataset_location(table.root, table.entry)
    leaves = _leaves(table)
    is_view = view_of(state) is not None
    protected = protected_columns(table.store, state)
    return TableDescription(
        summary=_summary(table.entry, state, table.root),
        description=properties.description,
        columns=tuple(
            _column(column, properties.row_keys, properties.sort_keys, protected)
            for column in columns_of(table.schema)
            if not (is_view and column.name.startswith(HIDDEN))
        ),
        row_keys=properties.row_keys,
        sort_keys=properties.sort_keys,
        leaves=leaves,
        unplaced_files=state.files.count - sum(leaf.files for leaf in leaves),
        location=location if "://" in location else Path(location).resolve().as_uri(),
        storage=dict(properties.storage),
        tags=dict(properties.tags),
        deletion_protection=properties.deletion_protection,
        table_id=state.table_id,
        generation=properties.generation,
        lance_version=state.lance_version,
        state_version=state.version,
        indexes=index_infos(table),
        dataset=state.dataset,
        retired=tuple(each.location for each in state.datasets if each.status == "retired"),
        unique=has_unique_keys(state),
        computed=computed_infos(table),
        retain_changes=retained_changes(state),
        view=_view(table),
    )


def _view(table: ReadTable) -> ViewInfo | None:
    view, freshness = view_of(table.state), freshness_of(table.store, table.state)
    if view is None or freshness is None:
        return None
    refreshed = None if freshness.refreshed_at is None else _moment(freshness.refreshed_at)
    return ViewInfo(
        view.query,
        {name: each.source for name, each in view.functions.items()},
        None if view.max_staleness is None else staleness_text(view.max_staleness),
        refreshed,
        {name: _moment(at) for name, at in freshness.behind.items()},
        _lineage(table, view),
        freshness.unknown,
    )


def _moment(at: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(at / 1000, dt.UTC)


def _lineage(table: ReadTable, view: ViewSpec) -> tuple[ColumnLineage, ...]:
    """Returns the lineage of the visible columns, without sources where the query does not fit its tables now."""
    found = view_lineage(table.store, view) or {}
    indexed = live_indexes(table.state)
    return tuple(
        ColumnLineage(
            name,
            tuple(f"{source}.{column}" for source, column in found.get(name, ())),
            tuple(index.name for index in indexed if index.columns[0].partition(".")[0] == name),
        )
        for name in table.schema.names
        if not name.startswith(HIDDEN)
    )


def _column(
    column: Any, row_keys: tuple[str, ...], sort_keys: tuple[str, ...], protected: Collection[str]
) -> ColumnInfo:
    roles = [f"row key {row_keys.index(column.name) + 1}"] if column.name in row_keys else []
    roles += [f"sort key {sort_keys.index(column.name) + 1}"] if column.name in sort_keys else []
    return ColumnInfo(
        column.name,
        format_type(column.type),
        column.nullable,
        ", ".join(roles),
        column.description,
        column.source,
        column.name in protected,
    )


def _leaves(table: ReadTable) -> tuple[LeafInfo, ...]:
    found = []
    sizes = sizes_of(table.state)
    for leaf in table.state.leaves():
        held = sizes[leaf.partition_id]
        found.append(
            LeafInfo(
                leaf.partition_id,
                _key(table, leaf.lower) if leaf.lower else None,
                _key(table, leaf.upper) if leaf.upper is not None else None,
                held.rows,
                held.bytes,
                held.files,
                held.across,
            )
        )
    return tuple(found)


def _key(table: ReadTable, encoded: bytes) -> tuple[Any, ...]:
    """Returns a split point in Python's values of the key columns' types: times as times."""
    values = decode_key(table.kinds, encoded)
    shown = []
    for value, name in zip(values, table.row_keys, strict=False):
        kind = table.schema.field(name).type
        temporal = pa.types.is_temporal(kind) and not pa.types.is_duration(kind)
        shown.append(pa.scalar(value, kind).cast(pa.string()).as_py() if temporal else value)
    return tuple(shown)
