"""Who changed a live table, and when, as far as its state log and its Lance commits tell."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from deployer.errors import DeployerError
from deployer.live.lance_io import dataset_location, open_dataset
from deployer.live.marks import Mark
from deployer.live.rollforward import transaction_of
from deployer.specs.arrow import columns_of
from deployer.specs.types import Column
from deployer.state.model import INSTANCE_LOG, TableEntry
from deployer.state.updates import RemoveTable, RenameTable, SetInstanceProperties, SetTableProperties, SetTableStatus

if TYPE_CHECKING:
    from deployer.state.store import StateStore

PLAIN_LANCE = "plain Lance"
VERSIONS = 200  #: how many versions of a dataset are looked at


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
    """The newest commit to Lance after which the column was another, or was there no more.

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


def _column(location: str, version: int, name: str) -> Column | None:
    schema = open_dataset(location, version).schema
    return next((column for column in columns_of(schema) if column.name == name), None)


def _author(store: StateStore, table_id: str, dataset: Any, version: int) -> str:
    transaction = transaction_of(dataset, version)
    if transaction is None or Mark.of(transaction.transaction_properties) is None:
        return PLAIN_LANCE
    try:
        entries = store.log(table_id)
    except DeployerError:
        return PLAIN_LANCE
    recorded = (
        entry.author
        for entry in entries
        if any(getattr(update, "lance_version", None) == version for update in entry.updates)
    )
    return next(recorded, "deployer")


def _time(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)


def _utc(stamp: dt.datetime) -> dt.datetime:
    return stamp.astimezone(dt.UTC)  # Lance gives local time without a zone
