"""Restores of several tables: all of them are recorded by one transaction of the state, or none is recorded.

One transaction writes an intent to each table, which names all of them. Then each dataset gets its commit. Readers
through the state ignore these commits until all are recorded. The process that finds such a restore settles it by the
runs, which have the same id on each table:

- All datasets have their commits, and nothing else was changed: it is recorded.
- Its process may still be working on it: nothing is done, and the tables keep their state from before.
- Others committed on top of a restored dataset: the other tables are restored too, because taking the restore back
  would undo those commits.
- In all other cases one transaction ends its runs, after which it can never be recorded, and each commit is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never

from deployer.datasets.commit_metadata import RESTORE
from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.lance_transactions import metadata_at
from deployer.datasets.recovery.past_version import state_at
from deployer.datasets.recovery.restored import (
    UndoneRestore,
    ValidRestore,
    WaitingRestore,
    commit_restore,
    judged_restore,
    restored,
    undo_restore,
)
from deployer.datasets.recovery.unrecorded import missing_updates
from deployer.errors import CommitTimedOut, Conflict, NotFound
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.state.commits import Part
from deployer.state.log.catalog_updates import CatalogRestored
from deployer.state.log.requirements import TableHasStatus, TableRequirement
from deployer.state.log.service_updates import RunEnded
from deployer.state.log.updates import SetTableDataset, TableRestored
from deployer.state.model.catalog_savepoints import catalog_savepoints
from deployer.state.model.entities import INSTANCE_LOG, RestoreTarget, TableEntry, TableState
from deployer.state.model.location import Location
from deployer.state.model.services import FinalStatus, Run
from deployer.state.transactions.services import to_fail_dead_run, to_give_up_restore
from deployer.state.transactions.tables import to_record, to_record_restore

if TYPE_CHECKING:
    import lance

    from deployer.state.store import StateStore

Outcome = Literal["recorded", "pending", "given up"]

ATTEMPTS = 20  #: how often a restore is examined again because others commit meanwhile


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The way in which the restoring process ends its runs when it cannot complete them."""

    status: FinalStatus
    reason: str


@dataclass(frozen=True, slots=True)
class _Member:
    """One of the tables.

    `dataset` is the table's dataset at Lance's newest version. `update` records the restore; None while Lance does not
    have it. `misplaced`: Lance has the restore on top of another commit, which it would undo. `changed`: the state for
    which the restore was decided has changed.
    """

    entry: TableEntry
    state: TableState
    run: Run
    target: RestoreTarget
    location: Location | None  #: version of the dataset that is restored; None where it was removed
    dataset: lance.LanceDataset
    update: TableRestored | None
    built_on: bool
    misplaced: bool
    changed: bool

    @property
    def in_place(self) -> bool:
        return self.target.dataset == self.state.dataset


def settle_together(
    store: StateStore, root: str, run_id: str, tables: Sequence[str], give_up: GiveUp | None = None
) -> Outcome:
    """Records the restore of all the tables, or abandons it and takes it back on all of them.

    `pending`: its process may still be working on it. Only that process passes `give_up`, when it has stopped working
    on it. Raises CommitTimedOut when others commit to the tables faster than this function can examine them.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            store.pause(attempt)
        with suppress(Conflict):
            if (outcome := _settled(store, root, run_id, tables, give_up)) is not None:
                return outcome
    raise CommitTimedOut(
        f"other processes commit faster to the tables of restore {run_id} than it can be settled",
        where=", ".join(f"table {each}" for each in tables),
        attempts=ATTEMPTS,
    )


def _settled(
    store: StateStore, root: str, run_id: str, tables: Sequence[str], give_up: GiveUp | None
) -> Outcome | None:
    """Returns the outcome; None when the restore is to be examined again. Raises Conflict with the message of the
    outcome."""
    if any(run_id in state.jobs for state in _states(store, tables)):
        return "recorded"
    members = [found for table_id in tables if (found := _member(store, root, run_id, table_id)) is not None]
    running = [each for each in members if each.run.status == "RUNNING"]
    built_on = any(each.built_on for each in members)
    if len(members) == len(tables) and all(each.update for each in members):
        [first, *others] = members
        if (
            not others and first.in_place and not first.target.catalog
        ):  # the next process that opens the table records it in any case
            _record(store, members, to_record(first.state.lance_version, first.state.dataset))
            return "recorded"
        if len(running) == len(tables) and (built_on or not any(each.changed for each in members)):
            _record(store, members)
            return "recorded"
    now = Clock().now()
    if give_up is None and any((each.run.lease_until or 0) >= now for each in running):
        return "pending"
    if len(running) == len(tables) and built_on and all(each.location for each in members):
        for each in members:
            if each.update is None:
                _restore(store, root, run_id, each)
        return None
    if running:
        _end_runs(store, running, give_up)
        reached("live.restore.given-up")
    for each in members:
        if each.in_place and (each.misplaced or (each.update is not None and not each.built_on)):
            undo_restore(each.dataset)
            reached("live.restore.taken-back")
    return "given up"


def _states(store: StateStore, tables: Sequence[str]) -> list[TableState]:
    found = []
    for table_id in tables:
        with suppress(NotFound):  # it was deleted
            found.append(store.table(table_id))
    return found


def _member(store: StateStore, root: str, run_id: str, table_id: str) -> _Member | None:
    """Returns None for a table that was deleted, or whose restore was abandoned by hand. Raises Conflict during a
    rewrite."""
    entry = store.instance().tables.get(table_id)
    if entry is None or entry.status != "active":
        return None
    try:
        state = store.table(table_id)
    except NotFound:
        return None
    if entry.dataset != state.dataset:
        raise Conflict("it was read before and after a change of its dataset", where=entry.address)
    intent, run = state.intents.get(run_id), state.runs.get(run_id)
    if intent is None or run is None or intent.restore is None:
        return None
    target, dataset = intent.restore, open_dataset(dataset_location(root, entry))
    changed = state.properties.generation != target.generation or _lacks_savepoint(store, target)
    misplaced = False
    update: TableRestored | None
    if target.dataset == state.dataset:
        match judged_restore(store, dataset, state):
            case WaitingRestore(update, built_on):
                pass
            case ValidRestore(update):
                built_on = dataset.version > update.lance_version
            case UndoneRestore():
                update, built_on, misplaced = None, False, True
            case None:
                update, built_on = None, False
            case other:
                assert_never(other)
        return _Member(
            entry=entry,
            state=state,
            run=run,
            target=target,
            location=entry.location,
            dataset=dataset,
            update=update,
            built_on=built_on,
            misplaced=misplaced,
            changed=changed,
        )
    retired = {each.number: each.location for each in state.datasets if each.status == "retired"}
    changed |= dataset.version != state.lance_version
    location = retired.get(target.dataset)
    update = None if location is None else _swapped(store, root, run_id, entry, state, target, location)
    return _Member(
        entry=entry,
        state=state,
        run=run,
        target=target,
        location=location,
        dataset=dataset,
        update=update,
        built_on=False,
        misplaced=misplaced,
        changed=changed,
    )


def _swapped(
    store: StateStore,
    root: str,
    run_id: str,
    entry: TableEntry,
    state: TableState,
    target: RestoreTarget,
    location: Location,
) -> TableRestored | None:
    """Returns the update of a table whose former dataset replaces its current one; None while Lance has no commit
    there."""
    retired = open_dataset(f"{root.rstrip('/')}/{location}")
    version = int(retired.version)
    if not any(info.kind == RESTORE and info.job_id == run_id for info in metadata_at(retired, version)):
        return None
    then = store.table(state.table_id, at=target.state_version)
    if then.dataset == target.dataset and then.lance_version < target.lance_version:
        then = state_at(retired.checkout_version(target.lance_version), then)
    return restored(state, then, run_id, target.name, version, entry.location)


def _record(store: StateStore, members: Sequence[_Member], required: list[TableRequirement] | None = None) -> None:
    parts, moved = [], list[SetTableDataset]()
    for each in members:
        if not each.in_place and each.location is not None:
            moved.append(SetTableDataset(each.state.table_id, each.location, each.target.dataset))
        state = each.state
        own = to_record_restore(each.run.run_id, state.dataset, state.properties.generation, state.lance_version)
        assert each.update is not None  # noqa: S101 -- complete
        parts.append(Part(state.table_id, [each.update], own if required is None else required))
    target = members[0].target
    catalog = [CatalogRestored(target.name)] if target.catalog and not _lacks_savepoint(store, target) else []
    if moved or catalog:
        active = [TableHasStatus(each.table_id, "active") for each in moved]
        parts.append(Part(INSTANCE_LOG, [*moved, *catalog], active))
    store.commit_all(parts)


def _lacks_savepoint(store: StateStore, target: RestoreTarget) -> bool:
    """Returns whether the catalog is to be restored to a savepoint that was removed meanwhile."""
    return target.catalog and target.name not in catalog_savepoints(store.instance())


def _restore(store: StateStore, root: str, run_id: str, member: _Member) -> None:
    """Commits a table's restore on top of the commits of others, which are recorded first."""
    state, target = member.state, member.target
    if member.misplaced:
        undo_restore(member.dataset)
        return
    if member.dataset.version != state.lance_version:
        updates = missing_updates(member.dataset, state)
        store.commit(state.table_id, updates, to_record(state.lance_version, state.dataset))
        return
    location = f"{root.rstrip('/')}/{member.location}"
    dataset = member.dataset if member.in_place else open_dataset(location)
    commit_restore(location, dataset, target.lance_version, run_id, target.name, target.state_version)


def _end_runs(store: StateStore, members: Sequence[_Member], give_up: GiveUp | None) -> None:
    parts = []
    for each in members:
        run = each.run
        if give_up is not None:
            ended, required = (
                RunEnded(run.run_id, give_up.status, reason=give_up.reason),
                to_give_up_restore(run.run_id),
            )
        else:
            reason = f"its holder {run.holder} is considered dead"
            ended = RunEnded(run.run_id, "FAILED", reason=reason)
            required = [*to_give_up_restore(run.run_id), *to_fail_dead_run(run.run_id, run.lease_until or 0)]
        parts.append(Part(each.state.table_id, [ended], required))
    store.commit_all(parts)


def end_dead_restores(store: StateStore, root: str, state: TableState) -> bool:
    """Ends restores that block other commits and whose holders are considered dead. Returns whether it ended any."""
    now, ended = Clock().now(), False
    for job_id, intent in state.intents.items():
        run = state.runs.get(job_id)
        if run is None or run.service != "RESTORE" or run.status != "RUNNING" or (run.lease_until or now) >= now:
            continue
        if intent.together:
            ended |= settle_together(store, root, job_id, intent.together) != "pending"
            continue
        with suppress(Conflict):  # another process ended it, or its lease was renewed
            reason = f"its holder {run.holder} is considered dead"
            update = RunEnded(run.run_id, "FAILED", reason=reason)
            store.commit(state.table_id, [update], to_fail_dead_run(run.run_id, run.lease_until or 0))
            ended = True
    return ended


def begun_together(state: TableState) -> list[tuple[str, tuple[str, ...]]]:
    """Returns the restores of several tables for which this table has an intent: their run, and the tables."""
    return [(job_id, intent.together) for job_id, intent in state.intents.items() if intent.together]


def is_restoring(state: TableState) -> bool:
    """Returns whether the table takes part in a restore of several tables that is neither recorded nor abandoned."""
    runs = (state.runs.get(job_id) for job_id, _ in begun_together(state))
    return any(run is not None and run.status == "RUNNING" for run in runs)
