"""Who changed a live table, and when, as far as its state log and its Lance commits tell."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from deployer.errors import DeployerError
from deployer.live.lance_io import dataset_location, open_dataset
from deployer.live.marks import Mark
from deployer.live.rollforward import transaction_of
from deployer.specs.arrow import columns_of
from deployer.specs.types import Column, ColumnType, FixedSizeList, ListOf, Struct, children
from deployer.state.model import INSTANCE_LOG, TableEntry
from deployer.state.updates import RemoveTable, RenameTable, SetInstanceProperties, SetTableProperties, SetTableStatus

if TYPE_CHECKING:
    from deployer.state.store import StateStore

PLAIN_LANCE = "plain Lance"
VERSIONS = 200  #: how many versions of a dataset are looked at

Path = tuple[str, ...]  #: of names, from a column to the field inside of it


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a change came from: `who` (an author of the state log, or plain Lance) and when (UTC).

    `version` is the dataset's that made it, None for what is no matter of the dataset.
    """

    who: str
    at: dt.datetime
    version: int | None = None


def property_origin(store: StateStore, table_id: str, name: str) -> Origin | None:
    """The newest transaction that set this property of the table; None when none is kept."""
    for entry in reversed(store.log(table_id)):
        if any(isinstance(update, SetTableProperties) and name in update.changes for update in entry.updates):
            return Origin(entry.author, _time(entry.at))
    return None


def instance_origin(store: StateStore) -> Origin | None:
    """The newest transaction that set properties of the instance."""
    for entry in reversed(store.log(INSTANCE_LOG)):
        if any(isinstance(update, SetInstanceProperties) for update in entry.updates):
            return Origin(entry.author, _time(entry.at))
    return None


def removal_origin(store: StateStore, table_id: str) -> Origin | None:
    """Who began to delete or move the table last; None when its dataset vanished otherwise."""
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


def column_origin(store: StateStore, root: str, entry: TableEntry, name: str) -> Origin | None:
    """The newest commit to Lance after which the column was another, or was there no more; without a name, their order.

    None when no version that is kept differs. A commit without the mark of ours is called plain Lance.
    """
    location = dataset_location(root, entry)
    newest = open_dataset(location)
    times: Mapping[int, Any] = {int(each["version"]): each["timestamp"] for each in newest.versions()}
    kept = sorted(times, reverse=True)[:VERSIONS]
    after = _column(location, kept[0], name)
    for version, before_version in pairwise(kept):
        before = _column(location, before_version, name)
        if before != after:
            return Origin(_author(store, entry.table_id, newest, version), _utc(times[version]), version)
    return None


def _column(location: str, version: int, name: str) -> Column | tuple[str, ...] | None:
    columns = columns_of(open_dataset(location, version).schema)
    if not name:
        return tuple(column.name for column in columns)
    return next((column for column in columns if column.name == name), None)


def index_origin(store: StateStore, root: str, entry: TableEntry, name: str) -> Origin | None:
    """The newest commit to Lance that built or dropped the index; None when no version that is kept did."""
    newest = open_dataset(dataset_location(root, entry))
    times = {int(each["version"]): each["timestamp"] for each in newest.versions()}
    for version in sorted(times, reverse=True)[:VERSIONS]:
        operation = getattr(transaction_of(newest, version), "operation", None)
        touched = (*getattr(operation, "new_indices", ()), *getattr(operation, "removed_indices", ()))
        if any(index.name == name for index in touched):
            return Origin(_author(store, entry.table_id, newest, version), _utc(times[version]), version)
    return None


def with_renames(root: str, entry: TableEntry, applied: Sequence[Column], live: Sequence[Column]) -> tuple[Column, ...]:
    """The live columns, `renamed_from` what was applied where others renamed them: Lance keeps a column's field id.

    What no version that is kept has any more under its old name stays as it is, and looks dropped and added.
    """
    gone = {*_paths(applied)} - {*_paths(live)}
    if not gone or {*_paths(live)} <= {*_paths(applied)}:  # nothing to be renamed, or nothing that it may be called now
        return tuple(live)
    location = dataset_location(root, entry)
    newest = open_dataset(location)
    ids: dict[int, Path] = {}
    for version in sorted((int(each["version"]) for each in newest.versions()), reverse=True)[:VERSIONS]:
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
    """Lance's field ids by path."""
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


def _author(store: StateStore, table_id: str, dataset: Any, version: int) -> str:
    transaction = transaction_of(dataset, version)
    marked = transaction is not None and Mark.of(transaction.transaction_properties) is not None
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


def _utc(stamp: dt.datetime) -> dt.datetime:
    return stamp.astimezone(dt.UTC)  # Lance gives local time without a zone
