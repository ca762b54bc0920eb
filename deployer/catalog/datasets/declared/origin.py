"""Finds the origin of a dataset's state in the instance's log."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from deployer.catalog.datasets.declared.live import live_of
from deployer.catalog.datasets.model.record import DatasetRecord
from deployer.live.provenance import Origin
from deployer.plan import changes as c
from deployer.state.log.codec import Mismatch, decode
from deployer.state.log.entries import LogEntry
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.declared_properties import RECORDINGS
from deployer.state.model.entities import INSTANCE_LOG, JSON
from deployer.state.reader import StateReader


def dataset_origin(store: StateReader, dataset_id: str, change: c.Change) -> Origin | None:
    """Returns the author and time of the transaction that set the subject of `change` to its present value; None when
    the log no longer has it."""
    made: LogEntry | None = None
    now: object = None
    for entry, value in _values(store, dataset_id):
        found = _aspect(value, change)
        if made is not None and found != now:
            break
        made, now = entry, found
    return None if made is None else Origin(made.author, dt.datetime.fromtimestamp(made.at / 1000, dt.UTC))


def _values(store: StateReader, dataset_id: str) -> Iterator[tuple[LogEntry, JSON]]:
    """Yields each transaction that changed the dataset's record, and the record after the transaction; the newest
    first."""
    key = RECORDINGS + dataset_id
    for entry in reversed(store.log(INSTANCE_LOG)):
        for update in reversed(entry.updates):
            if isinstance(update, SetInstanceProperties) and key in update.changes:
                yield entry, update.changes[key]
                break


def _aspect(value: JSON, change: c.Change) -> object:
    """Returns the part of a record that `change` is about; None for a record that does not exist or cannot be read."""
    try:
        record: DatasetRecord = decode(DatasetRecord, value)
    except (Mismatch, TypeError):
        return None
    spec = live_of(record).spec
    match change:
        case c.CreateSearchIndex(index=index) | c.DropSearchIndex(index=index) | c.RebuildSearchIndex(after=index):
            return next((each for each in spec.search_indexes if each.column == index.column), "no index")
        case c.ChangeDefaultBlueprint():
            return spec.default_blueprint or "no blueprint"
        case c.DeleteDataset():
            return True
        case _:
            return (
                spec.recordings,
                spec.register,
                spec.retention,
                spec.services,
                spec.description,
                spec.deletion_protection,
            )
