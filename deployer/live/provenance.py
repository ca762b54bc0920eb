"""The authors and times of changes of a live table, as far as its state log and its Lance commits show them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.indexes.read import INDEXES, observed_indexes
from deployer.datasets.lance_transactions import metadata_at, transaction_of
from deployer.datasets.storage.refs import versions_of
from deployer.errors import DeployerError
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import Column, ColumnType, FixedSizeList, ListOf, Struct, children
from deployer.state.log.entries import LogEntry
from deployer.state.log.service_updates import PutService, RemoveService
from deployer.state.log.updates import (
    CreateTable,
    RemoveTable,
    RenameTable,
    SetInstanceProperties,
    SetTableProperties,
    SetTableStatus,
    TableRebuilt,
    TableRestored,
    TableRewritten,
)
from deployer.state.model.declared_properties import SPEC
from deployer.state.model.entities import INSTANCE_LOG, TableEntry

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.reader import StateReader

PLAIN_LANCE, SOMEBODY = "plain Lance", "somebody"
VERSIONS = 200  #: how many versions of a dataset are compared

Path = tuple[str, ...]  #: path of names, from a column to the field inside of it


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a change: `who` (an author of the state log, or plain Lance) and when (UTC).

    `version` is the version of the dataset with the change, None for a change outside of the dataset.
    """

    who: str
    at: dt.datetime
    version: int | None = None


def property_origin(store: StateReader, table_id: str, name: str) -> Origin | None:
    """Returns the newest transaction that set this property of the table; None when none is kept."""
    for entry in reversed(store.log(table_id)):
        if any(isinstance(update, SetTableProperties) and name in update.changes for update in entry.updates):
            return Origin(entry.author, _time(entry.at))
    return None


def service_origin(store: StateReader, table_id: str, kind: str) -> Origin | None:
    """Returns the newest transaction that attached, changed or detached the table's service of that kind."""
    for entry in reversed(store.log(table_id)):
        for update in entry.updates:
            match update:
                case PutService(service=service) if service.kind == kind:
                    return Origin(entry.author, _time(entry.at))
                case RemoveService(kind=removed) if removed == kind:
                    return Origin(entry.author, _time(entry.at))
                case _:
                    pass
    return None


def instance_origin(store: StateReader) -> Origin | None:
    """Returns the newest transaction that set the instance's spec."""
    for entry in reversed(store.log(INSTANCE_LOG)):
        if any(isinstance(update, SetInstanceProperties) and SPEC in update.changes for update in entry.updates):
            return Origin(entry.author, _time(entry.at))
    return None


def removal_origin(store: StateReader, table_id: str) -> Origin | None:
    """Returns the origin of the last deletion or move of the table; None when its dataset disappeared in another
    way."""
    for entry in reversed(store.log(INSTANCE_LOG)):
        for update in entry.updates:
            match update:
                case RemoveTable(found) | RenameTable(found) if found == table_id:
                    return Origin(entry.author, _time(entry.at))
                case SetTableStatus(found, "deleting") if found == table_id:
                    return Origin(entry.author, _time(entry.at))
                case _:
                    pass
    return None


def column_origin(store: StateReader, root: str, entry: TableEntry, name: str) -> Origin | None:
    """Returns the newest commit to Lance that changed or removed the column; without a name, the newest that changed
    the order of columns.

    None when no kept version differs. A commit without deployer's metadata is called plain Lance.
    """
    location = dataset_location(root, entry)
    newest = open_dataset(location)
    times = versions_of(newest)
    kept = sorted(times, reverse=True)[:VERSIONS]
    after = _column(location, kept[0], name)
    for version, before_version in pairwise(kept):
        before = _column(location, before_version, name)
        if before != after:
            return Origin(_author(store, entry.table_id, newest, version), times[version], version)
    return None


def _column(location: str, version: int, name: str) -> Column | tuple[str, ...] | None:
    columns = columns_of(open_dataset(location, version).schema)
    if not name:
        return tuple(column.name for column in columns)
    return next((column for column in columns if column.name == name), None)


def index_origin(store: StateReader, root: str, entry: TableEntry, name: str) -> Origin | None:
    """Returns the newest commit to Lance that built or dropped the index; None when no kept version did.

    A commit that does not change the index's declaration, such as an update of the index, is skipped where an older
    commit is known to have built the index. Lance takes no metadata on such commits: `who` is `somebody` where the
    state log does not show it either.
    """
    newest = open_dataset(dataset_location(root, entry))
    times = versions_of(newest)
    entries: list[LogEntry] | None = None
    unknown: Origin | None = None
    for version in sorted(times, reverse=True)[:VERSIONS]:
        made, dropped = index_names(transaction_of(newest, version))
        if name not in made | dropped:
            continue
        entries = entries_of(store.log(entry.table_id), entry.dataset) if entries is None else entries
        if (who := index_builder(entries, name, version)) is not None:
            return Origin(who, times[version], version)
        if name in made - dropped and entries and not has_index(newest, name, version - 1):
            return Origin(PLAIN_LANCE, times[version], version)
        unknown = unknown or Origin(SOMEBODY, times[version], version)
        if not _stays(newest, name, version):
            return unknown
    return unknown


def _stays(dataset: LanceDataset, name: str, version: int) -> bool:
    """Returns whether the index has the kind, columns and parameters that it had in the version before."""
    try:
        before, after = (observed_indexes(dataset.checkout_version(each))[name] for each in (version - 1, version))
    except Exception:  # the version is not kept, or has no such index
        return False
    return (before.index.kind, before.index.columns, before.parameters) == (
        after.index.kind,
        after.index.columns,
        after.parameters,
    )


def index_names(transaction: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the names of the indexes that a commit made, and of those that it dropped; one that it replaced is in
    both."""
    operation = getattr(transaction, "operation", None)
    made, dropped = (getattr(operation, name, None) or () for name in ("new_indices", "removed_indices"))
    return frozenset(index.name for index in made), frozenset(index.name for index in dropped)


def has_index(dataset: LanceDataset, name: str, version: int) -> bool:
    """Returns whether the dataset had the index in that version; True when the version is not kept, and so may have had
    it.

    A commit that updates an index on vectors or on a field of a struct only adds a part to it, and looks like a first
    build.
    """
    try:
        earlier = dataset.checkout_version(version)
    except Exception:
        return True
    return any(each.name == name for each in earlier.describe_indices())


def entries_of(entries: Sequence[LogEntry], dataset: int) -> list[LogEntry]:
    """Returns the entries of a table's log from the time of the dataset with that number; none where its beginning is
    not kept."""
    found: list[LogEntry] = []
    number = 0
    for entry in entries:
        for update in entry.updates:
            if isinstance(update, CreateTable | TableRewritten | TableRestored | TableRebuilt):
                number = 1 if isinstance(update, CreateTable) else update.number
        if number == dataset:
            found.append(entry)
    return found


def index_builder(entries: Sequence[LogEntry], name: str, version: int) -> str | None:
    """Returns the author of the index that deployer built in that version: an index is remembered as begun before it is
    built.

    `entries` are those of the dataset.
    """
    builder, seen = None, 0
    for entry in entries:
        for update in entry.updates:
            number = getattr(update, "lance_version", 0) or 0
            if number >= version > seen:
                return builder
            if number > seen:
                builder, seen = None, number
            declared: Any = update.changes.get("declared") if isinstance(update, SetTableProperties) else None
            remembered = ((declared or {}).get(INDEXES) or {}).get(name) or {}
            if remembered.get("status") == "building":
                builder = entry.author
    return builder


def with_renames(root: str, entry: TableEntry, applied: Sequence[Column], live: Sequence[Column]) -> tuple[Column, ...]:
    """Returns the live columns.

    A column that another program renamed has its applied name as `renamed_from`, because Lance keeps a column's field
    id. If no kept version has the old name, the column stays unchanged, and looks dropped and added.
    """
    gone = {*_paths(applied)} - {*_paths(live)}
    if not gone or {*_paths(live)} <= {*_paths(applied)}:  # there is no column to rename, or no new name
        return tuple(live)
    location = dataset_location(root, entry)
    newest = open_dataset(location)
    ids: dict[int, Path] = {}
    for version in sorted(versions_of(newest), reverse=True)[:VERSIONS]:
        if not gone:
            break
        found = _field_ids(open_dataset(location, version))
        ids |= {found[path]: path for path in gone if path in found}
        gone -= found.keys()
    now = {path: ids[number] for path, number in _field_ids(newest).items() if number in ids}
    return _renamed(live, now, ())


def _paths(columns: Sequence[Column], parent: Path = ()) -> Iterator[Path]:
    for column in columns:
        yield (*parent, column.name)
        yield from _paths(children(column.type), (*parent, column.name))


def _field_ids(dataset: Any) -> dict[Path, int]:
    """Returns Lance's field ids by path."""
    ids: dict[Path, int] = {}

    def visit(fields: Any, parent: Path) -> None:
        for field in fields:
            ids[*parent, field.name()] = field.id()
            visit(field.children(), (*parent, field.name()))

    visit(dataset.lance_schema.fields(), ())
    return ids


def _renamed(columns: Sequence[Column], before: Mapping[Path, Path], parent: Path) -> tuple[Column, ...]:
    return tuple(_renamed_column(column, before, (*parent, column.name)) for column in columns)


def _renamed_column(column: Column, before: Mapping[Path, Path], path: Path) -> Column:
    column = replace(column, type=_renamed_type(column.type, before, path))
    was = before.get(path)
    return replace(column, renamed_from=was[-1]) if was and was[-1] != column.name else column


def _renamed_type(found: ColumnType, before: Mapping[Path, Path], path: Path) -> ColumnType:
    match found:
        case Struct(fields):
            return Struct(_renamed(fields, before, path))
        case ListOf(item) | FixedSizeList(item):
            return replace(found, item=_renamed_column(item, before, (*path, item.name)))
        case _:
            return found


def _author(store: StateReader, table_id: str, dataset: Any, version: int) -> str:
    marked = bool(metadata_at(dataset, version))
    try:
        recorded = any(job.lance_version == version for job in store.table(table_id).jobs.values())
        entries = store.log(table_id) if marked or recorded else []
    except DeployerError:
        return PLAIN_LANCE
    if not marked and not recorded:
        return PLAIN_LANCE
    authors = (
        entry.author
        for entry in entries
        if any(getattr(update, "lance_version", None) == version for update in entry.updates)
    )
    return next(authors, "deployer")


def _time(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)
