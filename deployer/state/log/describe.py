"""The texts of updates and entries, for people who read a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from deployer.platform.text.formatting import count
from deployer.state.log.catalog_updates import CatalogRestored, CatalogSavepointTaken
from deployer.state.log.describe_services import describe_service_update
from deployer.state.log.entries import LogEntry
from deployer.state.log.service_updates import ServiceUpdate
from deployer.state.log.updates import (
    CommitAbandoned,
    CommitStarted,
    CreateTable,
    DatasetRemoved,
    FilesAdded,
    FilesRemoved,
    FilesReplaced,
    PartitionSplit,
    RegisterTable,
    RemoveTable,
    RenameTable,
    RewriteStarted,
    RowsChanged,
    SetInstanceProperties,
    SetLanceVersion,
    SetSchema,
    SetTableDataset,
    SetTableProperties,
    SetTableStatus,
    TableRebuilt,
    TableRestored,
    TableRewritten,
    Update,
)
from deployer.state.model.entities import JSON, File

_SHORT = 40  #: characters; a longer value is shown as "…"


def describe_entry(entry: LogEntry) -> str:
    """Returns one line that describes all updates of the entry."""
    return "; ".join(map(describe_update, entry.updates))


def describe_update(update: Update) -> str:
    """Returns a description of the update, such as `add 3 files with 842 rows (job nightly, dataset version 12)`."""
    if isinstance(update, ServiceUpdate):
        return describe_service_update(update)
    match update:
        case SetInstanceProperties(changes) | SetTableProperties(changes):
            return _set(changes)
        case RegisterTable(entry):
            return f"register table {entry.full_name} ({entry.table_id}) at {entry.location}, {entry.status}"
        case SetTableStatus(table_id, status):
            return f"table {table_id[:8]} is {status}"
        case RenameTable(table_id, database, name):
            return f"rename table {table_id[:8]} to {database}.{name}"
        case SetTableDataset(table_id, location, dataset):
            return f"table {table_id[:8]} is in dataset {dataset} at {location}"
        case CatalogSavepointTaken(name):
            return f"take savepoint {name} of the catalog"
        case CatalogRestored(name):
            return f"restore the catalog to {name}"
        case RemoveTable(table_id):
            return f"forget table {table_id[:8]}"
        case CreateTable(properties, _, lance_version, partitions):
            keys = ", ".join(properties.row_keys) or "none"
            leaves = sum(each.is_leaf for each in partitions) or 1
            return f"create the table: row keys {keys}, {count(leaves, 'leaf', 'leaves')}{_of(None, lance_version)}"
        case SetSchema(_, lance_version):
            return f"change the schema{_of(None, lance_version)}"
        case SetLanceVersion(lance_version):
            return f"see dataset version {lance_version}"
        case CommitStarted(job_id, kind, base):
            return f"begin {kind}{_of(job_id, base, 'on dataset version')}"
        case FilesAdded(files, lance_version, job_id, rows, _):
            if not files:
                return f"done{_of(job_id, lance_version)}"
            number = rows if job_id is not None else _rows(files)
            return f"add {count(len(files), 'file')} with {count(number, 'row')}{_of(job_id, lance_version)}"
        case FilesReplaced(removed, files, lance_version, job_id, kind):
            into = f"{count(len(files), 'file')} with {count(_rows(files), 'row')}"
            what = f"{kind}: " if job_id is not None else ""
            return f"{what}replace {count(len(removed), 'file')} by {into}{_of(job_id, lance_version)}"
        case RowsChanged(left, removed, files, lance_version, job_id, kind, counts):
            done = [("insert", counts.inserted), ("update", counts.updated), ("delete", counts.deleted)]
            what = ", ".join(f"{verb} {count(rows, 'row')}" for verb, rows in done if rows) or "change no row"
            touched = f"{count(len(left), 'file')} changed, {len(removed):,} removed, {len(files):,} added"
            return f"{kind}: {what}: {touched}{_of(job_id, lance_version)}"
        case FilesRemoved(removed, lance_version):
            return f"remove {count(len(removed), 'file')}{_of(None, lance_version)}"
        case CommitAbandoned(job_id):
            return f"give up the commit of job {job_id}"
        case PartitionSplit(partition_id, _, left_id, right_id):
            return f"split partition {partition_id} into {left_id} and {right_id}"
        case RewriteStarted(dataset, location, _):
            return f"begin to rewrite the table into dataset {dataset} at {location}"
        case TableRewritten(dataset, _, _, lance_version, partitions, files):
            tree = count(sum(each.is_leaf for each in partitions) or 1, "leaf", "leaves")
            what = f"{count(len(files), 'file')} with {count(_rows(files), 'row')}, {tree}"
            return f"swap in dataset {dataset}: {what}{_of(None, lance_version)}"
        case TableRestored(job_id, savepoint, _, _, lance_version, _, _, _, files):
            what = f"{count(len(files), 'file')} with {count(_rows(files), 'row')}"
            return f"restore to {savepoint}: {what}{_of(job_id, lance_version)}"
        case TableRebuilt(lance_version, _, properties, _, files):
            what = f"{count(len(files), 'file')} with {count(_rows(files), 'row')}"
            keys = ", ".join(properties.row_keys) or "none"
            return f"rebuild the table from its dataset: row keys {keys}, {what}{_of(None, lance_version)}"
        case DatasetRemoved(dataset):
            return f"dataset {dataset} is removed"
        case _:
            assert_never(update)


def _set(changes: Mapping[str, JSON]) -> str:
    return "set " + ", ".join(f"{name} = {_short(value)}" for name, value in changes.items())


def _short(value: JSON) -> str:
    if isinstance(value, Mapping):
        return _limited(f"{{{', '.join(value)}}}", "{…}")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _limited(f"[{', '.join(map(str, value))}]", "[…]")
    return "none" if value is None else _limited(str(value).lower() if isinstance(value, bool) else str(value), "…")


def _limited(text: str, otherwise: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHORT else otherwise


def _of(job_id: str | None, lance_version: int, of: str = "dataset version") -> str:
    job = f"job {job_id}, " if job_id is not None else ""
    return f" ({job}{of} {lance_version})"


def _rows(files: Iterable[File]) -> int:
    return sum(file.rows for file in files)
