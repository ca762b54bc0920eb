"""The point that a restore returns to: a savepoint of a table, or a version of one of its datasets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deployer.datasets.storage.refs import versions_of
from deployer.errors import Refused
from deployer.state.log.updates import CreateTable, TableRebuilt, TableRestored, TableRewritten
from deployer.state.model.services import Savepoint
from deployer.tables.inspect.versions import dataset_at, time_of
from deployer.tables.open_table import OpenTable, ReadTable


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """A point in the history of one table. `lance_version` is a version of dataset number `dataset`.

    `name` is the name that the log records: the savepoint's name, or `version-DATASET.VERSION`. `label` is the name in
    messages: `savepoint then`, `version 3` or, for a dataset from before a rewrite, `version 1:3`. `state_version` is
    the version of the table's log that has the columns, settings and files of the point.
    """

    name: str
    label: str
    dataset: int
    lance_version: int
    state_version: int
    savepoint: Savepoint | None = None  #: None for a version

    @staticmethod
    def of_savepoint(savepoint: Savepoint) -> RestorePoint:
        return RestorePoint(
            savepoint.name,
            f"savepoint {savepoint.name}",
            savepoint.dataset,
            savepoint.lance_version,
            savepoint.state_version,
            savepoint,
        )


def version_point(table: OpenTable, at: str) -> RestorePoint:
    """Returns the point that `at` names: a version that `history` lists, such as `3` or `1:3`, or a time (ISO 8601).

    Raises InvalidInput for any other text, NotFound for a version that is not kept, and Refused for a version without a
    record in the log.
    """
    number, dataset, version = dataset_at(table, at)
    label = f"version {version}" if number == table.state.dataset else f"version {number}:{version}"
    recorded = list(_recorded_versions(table, number))
    moment = time_of(at)
    known = [each for each in recorded if each.lance_version == version]
    if not known:  # made with plain Lance, and recorded together with later versions: the record before it counts
        known = [each for each in recorded if each.lance_version < version]
        moment = moment or versions_of(dataset).get(version)
        last = max((each.lance_version for each in known), default=0)
        known = [each for each in known if each.lance_version == last]
    if not known:
        raise Refused(
            f"the columns and settings of {label} are not recorded",
            where=table.address,
            remedy="its record was removed by retention; restore a newer version that `deployer history` lists",
        )
    before = [each for each in known if moment is not None and each.at <= moment.timestamp() * 1000]
    chosen = known[-1] if moment is None else before[-1] if before else known[0]
    return RestorePoint(f"version-{number}.{version}", label, number, version, chosen.state_version)


@dataclass(frozen=True, slots=True)
class _LoggedVersion:
    """The state of the log at one of its entries: the newest version of a dataset. `at` (ms) is the time of the
    entry."""

    lance_version: int
    state_version: int
    at: int


def _recorded_versions(table: ReadTable, number: int) -> Iterator[_LoggedVersion]:
    """Yields the state of the log at each entry from the time when dataset `number` was the table's."""
    entries = table.store.log(table.entry.table_id)
    dataset = newest = 0
    if entries and entries[0].version > 1:  # retention removed the entries before
        first = table.store.table(table.entry.table_id, at=entries[0].version - 1)
        dataset, newest = first.dataset, first.lance_version
        if dataset == number:
            yield _LoggedVersion(newest, first.version, first.at)
    for entry in entries:
        for update in entry.updates:
            if isinstance(update, CreateTable):
                dataset, newest = 1, update.lance_version
            elif isinstance(update, TableRewritten | TableRestored | TableRebuilt):
                dataset, newest = update.number, update.lance_version
            else:
                newest = max(newest, getattr(update, "lance_version", 0) or 0)
        if dataset == number and newest:
            yield _LoggedVersion(newest, entry.version, entry.at)
