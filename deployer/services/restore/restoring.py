"""Restores tables to a savepoint or to versions, all of them or none.

First all tables are checked. Then one transaction writes the intents of all tables, which name the restore points. One
commit to each dataset makes the restored rows its next version. Where a table was rewritten since, the dataset of the
restore point gets the commit. One transaction records all commits, and makes that dataset the table's again.
`deployer.datasets.recovery.restored_together` describes what happens if the process dies or others commit in between.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from deployer.datasets.commit_metadata import RESTORE
from deployer.datasets.dataset import latest_version, open_dataset
from deployer.datasets.recovery.restored import commit_restore
from deployer.datasets.recovery.restored_together import GiveUp, settle_together
from deployer.datasets.recovery.rollforward import refresh
from deployer.datasets.storage.places import dataset_uri
from deployer.errors import Conflict, DeployerError
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress
from deployer.runs.runner import failure_of
from deployer.services.restore.catalog import CatalogUndoing, require_catalog, restore_catalog
from deployer.services.restore.planning import Base, Undoing, place_of, undoing
from deployer.state.commits import Part
from deployer.state.log.service_requirements import RunHasStatus
from deployer.state.log.updates import CommitAbandoned, CommitStarted
from deployer.state.model.entities import RestoreTarget
from deployer.state.model.services import Figures, FinalStatus
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_restore
from deployer.tables.inspect.savepoint_tags import settle_tags
from deployer.tables.open_table import OpenTable, open_entry


@dataclass(frozen=True, slots=True)
class Restored:
    """The outcome for one table. SKIPPED: the table already had that content. `lance_version` is the new one."""

    table: str
    run_id: str
    status: FinalStatus
    why: str
    undone: Undoing
    lance_version: int
    seconds: float

    @property
    def figures(self) -> Figures:
        """The figures for the record of the run."""
        undone = self.undone
        names = ("rows", "files", "bytes", "leaves")
        before, after = ({name: getattr(undone, name)[i] for name in names} for i in (0, 1))
        return Figures(
            lance_version_before=undone.base.lance_version,
            lance_version_after=self.lance_version,
            before=before,
            after=after,
        )


def restore_all(
    store: StateStore,
    root: str,
    planned: Sequence[Undoing],
    run_id: str,
    on_progress: OnProgress,
    *,
    force: bool,
    catalog: CatalogUndoing | None = None,
) -> list[Restored]:
    """Restores the tables, and the `catalog`, to the previewed restore points: all of them, or none.

    Each table has a run with the id `run_id`. With `force` it also undoes commits since the preview. Raises Conflict
    where there were such commits, unless `force`, or where others commit meanwhile; then nothing is changed. Raises
    Refused as the preview does.
    """
    started = time.monotonic()
    if catalog is not None:
        require_catalog(store, catalog, force=force)
    looked_at = [_looked_at(store, root, each, force=force) for each in planned]
    due = [(table, undone) for table, undone in looked_at if not undone.nothing]
    done = {}
    if due:
        on_progress(Progress(f"restoring {due[0][1].point.label}", 0, len(due), "versions"))  # it can stop until here
        done = _restore(store, root, due, run_id, catalog=catalog is not None)
    elif catalog is not None:
        restore_catalog(store, catalog)
    seconds = time.monotonic() - started
    return [
        Restored(undone.table, run_id, "SUCCEEDED", "", undone, done[undone.table_id], seconds)
        if undone.table_id in done
        else _skipped(table, undone, run_id)
        for table, undone in looked_at
    ]


def _skipped(table: OpenTable, undone: Undoing, run_id: str) -> Restored:
    why = f"the same as at {undone.point.label}"
    return Restored(undone.table, run_id, "SKIPPED", why, undone, table.state.lance_version, 0.0)


def _looked_at(store: StateStore, root: str, planned: Undoing, *, force: bool) -> tuple[OpenTable, Undoing]:
    table, point = open_entry(store, root, store.instance().tables[planned.table_id]), planned.point
    if point.savepoint is not None and table.state.savepoints.get(point.name) != point.savepoint:
        raise Conflict(f"{point.label} was removed meanwhile", where=table.address, remedy="choose another one")
    if Base.of(table.state) != planned.base and not force:
        raise _changed(table)
    return table, undoing(table, point)


def _restore(
    store: StateStore, root: str, due: Sequence[tuple[OpenTable, Undoing]], run_id: str, *, catalog: bool
) -> dict[str, int]:
    """Restores the datasets and returns their new versions, by the ids of the tables."""
    ids = tuple(undone.table_id for _, undone in due)
    reached("services.restore.before-intent")
    _begin(store, due, run_id, ids, catalog=catalog)
    reached("services.restore.before-lance")
    try:
        for table, undone in due:
            if latest_version(table.location) != undone.base.lance_version:
                raise _changed(table)
        for table, undone in due:
            _commit_to_lance(table, undone, run_id)
            reached("services.restore.after-lance")
        if settle_together(store, root, run_id, ids) != "recorded":
            raise _changed(_other_than(due))
    except (Exception, KeyboardInterrupt) as failure:
        if not _is_recorded(store, root, run_id, ids, failure):
            if isinstance(failure, DeployerError) or not isinstance(failure, Exception):
                raise
            said = str(failure).splitlines()[0]
            raise Conflict(f"Lance refused to restore: {said}", where=_where(due), remedy="run it again") from failure
    reached("services.restore.after-state")
    done = {}
    for _, undone in due:
        after = open_entry(store, root, store.instance().tables[undone.table_id])
        settle_tags(after)
        done[undone.table_id] = after.state.jobs[run_id].lance_version
    return done


def _begin(
    store: StateStore,
    due: Sequence[tuple[OpenTable, Undoing]],
    run_id: str,
    ids: tuple[str, ...],
    *,
    catalog: bool,
) -> None:
    """Writes the intents of all tables. Raises Conflict where a table was changed since its check."""
    parts = []
    for _, undone in due:
        base, point = undone.base, undone.point
        target = RestoreTarget(
            point.name, point.dataset, point.lance_version, point.state_version, base.generation, ids, catalog
        )
        required = to_restore(base.dataset, base.generation, base.lance_version)
        intent = CommitStarted(run_id, RESTORE, base.lance_version, target)
        parts.append(Part(undone.table_id, [intent], [*required, RunHasStatus(run_id, "RUNNING")]))
    try:
        store.commit_all(parts)
    except Conflict as conflict:
        changed = [table for table, undone in due if Base.of(store.table(undone.table_id)) != undone.base]
        raise _changed(changed[0] if changed else due[0][0]) from conflict
    store.flush()  # commits to Lance count by the intents, so these must be durable first


def _commit_to_lance(table: OpenTable, undone: Undoing, run_id: str) -> None:
    point, base = undone.point, undone.base
    location = dataset_uri(table.root, place_of(table, point))
    dataset = open_dataset(location, base.lance_version if point.dataset == base.dataset else None)
    commit_restore(location, dataset, point.lance_version, run_id, point.name, point.state_version)


def _is_recorded(store: StateStore, root: str, run_id: str, ids: Sequence[str], failure: BaseException) -> bool:
    """Returns whether the restore was recorded despite `failure`; otherwise undoes it on all tables."""
    try:
        if settle_together(store, root, run_id, ids, GiveUp(*failure_of(failure))) == "recorded":
            return True
        for table_id in ids:
            refresh(store, root, table_id)  # records that its commit was undone
    except DeployerError:  # the next process that opens one of the tables undoes it
        return False
    with suppress(DeployerError):  # the intents no longer exist, or a table was deleted
        store.commit_all([Part(table_id, [CommitAbandoned(run_id)]) for table_id in ids])
    return False


def _other_than(due: Sequence[tuple[OpenTable, Undoing]]) -> OpenTable:
    """Returns the first table that others changed during the restore."""
    for table, undone in due:
        in_place = undone.point.dataset == undone.base.dataset
        moved = latest_version(table.location) != undone.base.lance_version + (1 if in_place else 0)
        if moved or table.store.table(undone.table_id).properties.generation != undone.base.generation:
            return table
    return due[0][0]


def _where(due: Sequence[tuple[OpenTable, Undoing]]) -> str:
    return ", ".join(table.address for table, _ in due)


def _changed(table: OpenTable) -> Conflict:
    return Conflict(
        "the table was changed since the preview, and going back would undo that too; nothing was restored",
        where=table.address,
        remedy="preview again, or give --force to undo it too",
    )
