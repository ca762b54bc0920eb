"""Restores one table to a savepoint or a version: the intent in the log, then Lance, then the record in the log.

The rows of then become the dataset's next version by one commit, which says in its mark what it is: one whose record
was lost is recorded by whoever opens the table next. Where the table was rewritten since, the dataset of then takes the
place of the current one instead, by one transaction of the log. Others commit nothing between intent and record.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from deployer.errors import Conflict, DeployerError
from deployer.live.lance_io import latest_version, open_dataset
from deployer.live.marks import RESTORE
from deployer.live.restored import commit_restore, restored
from deployer.services.restore.planning import Base, Undoing, place_of, state_then, undoing
from deployer.state.commits import Part
from deployer.state.conflicts import to_restore
from deployer.state.failpoints import reached
from deployer.state.model import INSTANCE_LOG, TableState
from deployer.state.requirements import TableHasStatus
from deployer.state.service_requirements import RunHasStatus
from deployer.state.services import Figures, FinalStatus
from deployer.state.store import StateStore
from deployer.state.updates import CommitAbandoned, CommitStarted, SetTableDataset
from deployer.tables.dataset import OpenTable, open_entry
from deployer.tables.progress import OnProgress, Progress
from deployer.tables.savepoint_tags import settle_tags
from deployer.tables.storage import dataset_uri

ATTEMPTS = 5  #: how often a restore that is forced begins again because others commit meanwhile


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one table. SKIPPED: it is as it was then. `lance_version` is the new one."""

    table: str
    run_id: str
    status: FinalStatus
    why: str
    undone: Undoing
    lance_version: int
    seconds: float

    @property
    def figures(self) -> Figures:
        """For the record of the run."""
        undone = self.undone
        names = ("rows", "files", "bytes", "leaves")
        before, after = ({name: getattr(undone, name)[i] for name in names} for i in (0, 1))
        return Figures(
            lance_version_before=undone.base.lance_version,
            lance_version_after=self.lance_version,
            before=before,
            after=after,
        )


def restore_one(
    store: StateStore, root: str, planned: Undoing, run_id: str, on_progress: OnProgress, *, force: bool
) -> Restored:
    """Makes one table as it was at the previewed moment. With `force` it also undoes commits since the preview.

    Raises Conflict when something was, and nothing is changed then; Refused as the preview does.
    """
    started = time.monotonic()
    point = planned.point
    for attempt in range(ATTEMPTS):
        table = open_entry(store, root, store.instance().tables[planned.table_id])
        if point.savepoint is not None and table.state.savepoints.get(point.name) != point.savepoint:
            raise Conflict(f"{point.words} was removed meanwhile", where=table.address, remedy="choose another one")
        if Base.of(table.state) != planned.base and not force:
            raise _changed(table)
        undone = undoing(table, point)
        if undone.nothing:
            why = f"it is as it was at {point.words}"
            return Restored(planned.table, run_id, "SKIPPED", why, undone, table.state.lance_version, 0.0)
        on_progress(Progress(f"restoring {point.words}", 0, 1, "versions"))  # the last moment to stop it
        try:
            version = _restore(table, undone, run_id)
        except Conflict:
            if not force or attempt == ATTEMPTS - 1:
                raise
            continue
        return Restored(planned.table, run_id, "SUCCEEDED", "", undone, version, time.monotonic() - started)
    raise AssertionError("unreachable")


def _restore(table: OpenTable, undone: Undoing, run_id: str) -> int:
    store, now, table_id = table.store, table.state, table.entry.table_id
    then, base = state_then(table, undone.point), undone.base
    unchanged = to_restore(base.dataset, base.generation, base.lance_version)
    reached("services.restore.before-intent")
    if run_id not in now.intents:
        try:
            intent = CommitStarted(run_id, RESTORE, base.lance_version)
            store.commit(table_id, [intent], [*unchanged, RunHasStatus(run_id, "RUNNING")])
        except Conflict as conflict:
            raise _changed(table) from conflict
    reached("services.restore.before-lance")
    try:
        if latest_version(table.location) != base.lance_version:
            raise _changed(table)
        location = dataset_uri(table.root, place_of(table, undone.point))
        dataset = open_dataset(location, base.lance_version if then.dataset == now.dataset else None)
        point = undone.point
        commit_restore(location, dataset, point.lance_version, run_id, point.name, point.state_version)
        reached("services.restore.after-lance")
        if then.dataset != now.dataset:
            _swap(table, then, undone, run_id, latest_version(location))
        after = open_entry(store, table.root, store.instance().tables[table_id])
    except Exception as failure:
        after = open_entry(store, table.root, store.instance().tables[table_id])
        if run_id not in after.state.jobs:
            _give_up(store, table_id, run_id)
            if isinstance(failure, DeployerError):
                raise
            said = str(failure).splitlines()[0]
            raise Conflict(f"Lance refused to restore: {said}", where=table.address, remedy="run it again") from failure
    reached("services.restore.after-state")
    if run_id not in after.state.jobs:  # others than deployer committed at that very moment: theirs stands
        _give_up(store, table_id, run_id)
        raise _changed(table)
    settle_tags(after)
    return after.state.jobs[run_id].lance_version


def _swap(table: OpenTable, then: TableState, undone: Undoing, run_id: str, version: int) -> None:
    """Makes the dataset of then the table's; the current one is retired."""
    base, table_id = undone.base, table.entry.table_id
    place = place_of(table, undone.point)
    if latest_version(table.location) != base.lance_version:
        raise _changed(table)
    update = restored(table.state, then, run_id, undone.point.name, version, table.entry.location)
    unchanged = to_restore(base.dataset, base.generation, base.lance_version)
    moved = SetTableDataset(table_id, place, then.dataset)
    table.store.commit_all(
        [
            Part(INSTANCE_LOG, [moved], [TableHasStatus(table_id, "active")]),
            Part(table_id, [update], [*unchanged, RunHasStatus(run_id, "RUNNING")]),
        ]
    )


def _give_up(store: StateStore, table_id: str, run_id: str) -> None:
    with suppress(Conflict):  # there is none any more
        store.commit(table_id, [CommitAbandoned(run_id)])


def _changed(table: OpenTable) -> Conflict:
    return Conflict(
        "the table was changed since the preview, and going back would undo that too",
        where=table.address,
        remedy="preview again, or give --force to undo it too",
    )
