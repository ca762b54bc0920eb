"""Keeps the record in a table's dataset equal to the state store, so that a lost store can be rebuilt.

The record does not repeat the metadata of commits to Lance, so loads do not write it. Everything else that is committed
to the state is recorded before the commit returns to its writer. A process that dies in between leaves an old record.
The next process that commits to the table detects the old record at its first commit, before it adds rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from deployer.errors import DeployerError, Interrupted, NotFound
from deployer.platform.system.failpoints import reached
from deployer.state.log.service_updates import (
    PauseService,
    PutService,
    RemoveService,
    ResumeService,
    SavepointRemoved,
    SavepointsExpired,
    SavepointTaken,
)
from deployer.state.log.updates import (
    CreateTable,
    DatasetRemoved,
    PartitionSplit,
    RenameTable,
    RewriteStarted,
    SetTableDataset,
    SetTableProperties,
    SetTableStatus,
    TableRebuilt,
    TableRestored,
    TableRewritten,
    Update,
)
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, TableEntry, TableState
from deployer.state.records.document import (
    JOBS,
    TABLE,
    TableRecord,
    is_recorded,
    jobs_of,
    record_of,
    table_from_bytes,
    to_bytes,
)
from deployer.state.records.files import RecordFiles

if TYPE_CHECKING:
    from deployer.platform.system.clock import Clock
    from deployer.state.commits import Part

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5  #: attempts to write a record while the state changes

#: The updates of a table's log that are not in the commit metadata in Lance.
_RECORDED = (
    CreateTable
    | SetTableProperties
    | PartitionSplit
    | RewriteStarted
    | TableRewritten
    | TableRestored
    | TableRebuilt
    | DatasetRemoved
    | PutService
    | RemoveService
    | PauseService
    | ResumeService
    | SavepointTaken
    | SavepointRemoved
    | SavepointsExpired
)
_OF_INSTANCE = SetTableStatus | RenameTable | SetTableDataset
#: The updates after which the commit metadata no longer shows which jobs are done.
_JOBS_DIFFER = TableRewritten | TableRestored | TableRebuilt


class States(Protocol):
    """The source of the newest states for the keeper."""

    def instance(self) -> InstanceState: ...

    def table(self, table_id: str) -> TableState: ...


class RecordKeeper:
    """The writer of the records of one instance's tables, for the commits of one process."""

    def __init__(self, files: RecordFiles, clock: Clock) -> None:
        self._files, self._clock = files, clock
        self._checked: set[str] = set()

    def after_commit(self, parts: Sequence[Part], states: States) -> None:
        """Writes the records of the tables that a commit changed. A failure is only logged, because the commit has
        succeeded already."""
        changed: dict[str, bool] = {}
        seen: set[str] = set()
        for part in parts:
            for table_id, jobs in _recorded(part.log, part.updates):
                changed[table_id] = changed.get(table_id, False) or jobs
            if part.log != INSTANCE_LOG:
                seen.add(part.log)
        # The difference is computed in one step, because other threads add to `_checked`.
        for table_id in changed.keys() | (seen - self._checked):
            with _logged(table_id):
                if table_id in changed:
                    self._keep(table_id, states, jobs=changed[table_id])
                else:
                    self._check(table_id, states)
                self._checked.add(table_id)

    def keep(self, table_id: str, states: States) -> None:
        """Writes the record of the table and that of its jobs and files. A failure is only logged."""
        with _logged(table_id):
            self._keep(table_id, states, jobs=True)

    def _check(self, table_id: str, states: States) -> None:
        """Writes the record of an active table unless it already has the content of the state."""
        found = _newest(table_id, states)
        if found is None or found[1].status != "active":
            return
        instance, entry, state = found
        try:
            data = self._files.read(entry.location, TABLE)
            known = table_from_bytes(data, entry.location) if data is not None else None
        except DeployerError:
            known = None
        if known is None or not known.says_what(self._record(instance, entry, state)):
            self._keep(table_id, states, jobs=True)

    def _keep(self, table_id: str, states: States, *, jobs: bool) -> None:
        written: TableRecord | None = None
        for _ in range(_ATTEMPTS):
            found = _newest(table_id, states)
            if found is None:
                return
            instance, entry, state = found
            record = self._record(instance, entry, state)
            if written is not None and written.says_what(record):
                return
            locations = [entry.location]
            if entry.status == "deleting":  # a rebuild must not restore the table from any of its datasets
                locations += [each.location for each in state.datasets if each.status in ("retired", "writing")]
            reached("state.record.before-write")
            for location in dict.fromkeys(locations):
                if jobs:
                    self._files.write(location, JOBS, to_bytes(jobs_of(state)))
                if not self._files.write(location, TABLE, to_bytes(record)) and location == entry.location:
                    return
            reached("state.record.written")
            written = record

    def _record(self, instance: InstanceState, entry: TableEntry, state: TableState) -> TableRecord:
        return record_of(instance, entry, state, self._clock.now())


@contextmanager
def _logged(table_id: str) -> Iterator[None]:
    try:
        yield
    except Interrupted:
        raise
    except (DeployerError, OSError) as error:
        _LOG.warning("the record of table %s in its dataset was not written: %s", table_id, error)


def _recorded(log: str, updates: Iterable[Update]) -> Iterable[tuple[str, bool]]:
    """Yields the ids of tables whose record the updates change, and whether they change which jobs are done."""
    for update in updates:
        if isinstance(update, _OF_INSTANCE):
            yield update.table_id, False
        elif isinstance(update, SavepointTaken | SavepointRemoved) and not is_recorded(update.name):
            continue
        elif isinstance(update, _RECORDED):
            adopted = (
                isinstance(update, CreateTable) and update.lance_version > 1
            )  # other programs wrote the earlier commit metadata
            yield log, adopted or isinstance(update, _JOBS_DIFFER)


def _newest(table_id: str, states: States) -> tuple[InstanceState, TableEntry, TableState] | None:
    """Returns the newest state of the instance, and the table's entry and state, which belong together.

    Returns None while the table is being created, after it was removed, and when the two do not fit after several
    attempts.
    """
    for _ in range(_ATTEMPTS):
        instance = states.instance()
        entry = instance.tables.get(table_id)
        if entry is None or entry.status == "creating":
            return None
        try:
            state = states.table(table_id)
        except NotFound:
            return None
        if entry.dataset == state.dataset:
            return instance, entry, state
    return None
