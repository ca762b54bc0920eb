"""Verifies the state of an instance, and repairs logs, snapshots and their records of datasets where possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.errors import lance_errors, lost_data
from deployer.datasets.recovery.restored_together import is_restoring
from deployer.datasets.recovery.rollforward import current
from deployer.datasets.recovery.unrecorded import missing_updates, read_again
from deployer.errors import Conflict, DeployerError, Interrupted, NotFound
from deployer.live.reader import live_table
from deployer.platform.storage.envelope import FORGED
from deployer.platform.system.clock import utc
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.state.audit.differences import Difference
from deployer.state.audit.logs import LogAudit
from deployer.state.audit.repair import Step
from deployer.state.log.describe import describe_entry, describe_update
from deployer.state.log.updates import CommitAbandoned, SetLanceVersion, TableUpdate
from deployer.state.model.catalog_savepoints import logs_of_datasets
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, TableEntry, TableState
from deployer.state.model.table_locations import fault_of_pair
from deployer.state.reader import StateReader
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_record
from deployer.tables.maintenance.verify.audit_dataset import DatasetAudit, audit_dataset
from deployer.tables.open_table import find_entry

_AGAIN = 5  #: how often the check of a table is repeated because others commit to the table meanwhile
HOUR = 3_600_000  #: ms; younger pending commits are not changed


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings for the instance (`name` is `instance`) or a table.

    `unfinished` is the work of a dead process that the next process completes; it is not a difference.
    """

    name: str
    audit: LogAudit
    dataset: DatasetAudit = DatasetAudit()
    more: tuple[Difference, ...] = ()
    unfinished: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[Difference, ...]:
        return (*self.audit.differences, *self.more, *self.dataset.differences)


def verify(store: StateReader, root: str, names: Sequence[str] = (), *, full: bool = False) -> Iterator[Verification]:
    """Yields the findings for the instance and its tables, or only for the tables in `names` (names or ids).

    If the instance's log is too damaged to show its tables, only the logs are verified. It changes nothing.
    """
    audit = store.audit(INSTANCE_LOG)
    if audit.state is None:
        for log in (INSTANCE_LOG, *_other_logs(store)):
            found = audit if log == INSTANCE_LOG else store.audit(log)
            yield Verification(log, found, unfinished=_folders(found))
        return
    instance = audit.state
    assert isinstance(instance, InstanceState)  # noqa: S101 (it is that log's)
    if not names:
        known = instance.tables.keys() | logs_of_datasets(instance)
        lost = [log for log in _other_logs(store) if log not in known]
        more = tuple(
            Difference(f"log {log}", "it belongs to no table of the instance, and to no dataset") for log in lost
        )
        yield Verification(INSTANCE_LOG, audit, more=more, unfinished=_folders(audit))
    for entry in _chosen(instance, names):
        try:
            yield _verified(store, root, entry, full=full)
        except Interrupted:
            raise
        except DeployerError as error:  # such as a log of a newer deployer
            yield Verification(entry.full_name, LogAudit(entry.table_id, None), more=(_unverified(entry, error),))


def _unverified(entry: TableEntry, error: DeployerError) -> Difference:
    where = f"table/{entry.full_name}" if error.where is None else str(error.where)
    return Difference(where, f"{error.what}; {error.remedy}" if error.remedy else error.what)


def _other_logs(store: StateReader) -> list[str]:
    return [log for log in store.logs() if log != INSTANCE_LOG]


def _chosen(instance: InstanceState, names: Sequence[str]) -> list[TableEntry]:
    entries = sorted(instance.tables.values(), key=lambda entry: entry.full_name)
    if not names:
        return entries
    return [named_entry(entries, name) for name in names]


def named_entry(entries: Iterable[TableEntry], name: str) -> TableEntry:
    """Returns the table with this name or id, whatever its status. Raises NotFound and InvalidInput."""
    listed = list(entries)
    for entry in listed:
        if name in (entry.table_id, entry.full_name):
            return entry
    return find_entry(listed, name)


def _verified(store: StateReader, root: str, entry: TableEntry, *, full: bool, again: int = _AGAIN) -> Verification:
    name = entry.full_name
    unfinished = {
        "creating": (f"table/{name}: its creation is unfinished; the next `deployer up` resumes it",),
        "deleting": (f"table/{name}: its deletion is unfinished; the next `deployer up` or `destroy` ends it",),
        "active": (),
    }[entry.status]
    try:
        audit = store.audit(entry.table_id)
    except NotFound:  # the log is removed, and the instance does not record the removal yet
        audit = LogAudit(entry.table_id, None)
    if entry.status != "active":
        return Verification(name, audit, unfinished=(*unfinished, *_folders(audit)))
    state = audit.state
    if not isinstance(state, TableState) or not state.version:
        gone = () if audit.differences else (Difference(f"table/{name}", "it has no log"),)
        return Verification(name, audit, more=gone)
    more = []
    if entry.dataset != state.dataset:
        message = f"the instance says that its dataset is number {entry.dataset}, its own log {state.dataset}"
        more.append(Difference(f"table/{name}", message))
    elif wrong := fault_of_pair(entry, state):
        return Verification(name, audit, more=(Difference(f"table/{name}", wrong),))
    try:
        live_table(entry, state)
    except DeployerError as error:
        return Verification(name, audit, more=(*more, Difference(f"table/{name}", error.what)))
    with lance_errors(dataset_location(root, entry)):
        dataset = audit_dataset(root, entry, state, full=full)
    if state.lance_version < dataset.newest <= store.table(entry.table_id).lance_version and again:
        return _verified(store, root, entry, full=full, again=again - 1)  # a writer was between Lance and the log
    under_way = (
        f"table/{name}: job {each.job_id} ({each.kind}) began to commit at {utc(each.started_at)} UTC and has not ended"
        for each in state.intents.values()
    )
    return Verification(name, audit, dataset, tuple(more), (*under_way, *_folders(audit)))


def _folders(audit: LogAudit) -> tuple[str, ...]:
    return tuple(f"snapshot folder {each}: nothing points to it; retention removes it" for each in audit.unpointed)


def repair(
    store: StateStore,
    root: str,
    names: Sequence[str] = (),
    *,
    now: int,
    dry_run: bool = False,
    drop_history: bool = False,
    grace: int = HOUR,
    on_progress: OnProgress = no_progress,
) -> Iterator[Step]:
    """Repairs the state, and yields each action after it is done. With `dry_run`, only yields the actions.

    Abandons pending commits that began more than `grace` ms before `now` and that Lance does not have.
    """
    audit = store.audit(INSTANCE_LOG)
    if not names or audit.state is None:
        yield from store.fix(audit, dry_run=dry_run, drop_history=drop_history)
    if audit.state is None:
        for log in _other_logs(store):
            yield from store.fix(store.audit(log), dry_run=dry_run, drop_history=drop_history)
        return
    instance = audit.state
    assert isinstance(instance, InstanceState)  # noqa: S101 (it is that log's)
    chosen = list(_chosen(instance, names))
    for entry in counted(chosen, len(chosen), "reading logs and datasets", "tables", on_progress):
        if entry.status != "active":
            continue
        try:
            audit = store.audit(entry.table_id)
        except NotFound:
            continue
        for step in store.fix(audit, dry_run=dry_run, drop_history=drop_history):
            yield replace(step, where=f"table/{entry.full_name}, {step.where}")
        if isinstance(audit.state, TableState) and audit.state.version:
            try:
                with lance_errors(dataset_location(root, entry)):
                    yield from _repair_table(store, root, entry, audit.state, dry_run, now - grace)
            except DeployerError as error:
                yield Step(f"table/{entry.full_name}", str(error), left=True)


def _repair_table(
    store: StateStore, root: str, entry: TableEntry, state: TableState, dry_run: bool, before: int
) -> Iterator[Step]:
    where = f"table/{entry.full_name}"
    if wrong := fault_of_pair(entry, state):
        yield Step(where, f"{wrong}; {FORGED}", left=True)
        return
    live_table(entry, state)  # raises Corrupt for a fault that a repair cannot change
    found = audit_dataset(root, entry, state, full=True)
    yield from (
        Step(each.where, f"{each.what}; {lost_data(entry.full_name)}", left=True)
        for each in found.differences
        if each.lasting
    )
    if found.newest > state.lance_version:
        if dry_run:
            updates = missing_updates(open_dataset(dataset_location(root, entry)), state)
            yield Step(where, f"record what Lance has, up to its version {found.newest}: {_words(updates)}")
        else:
            recorded = state.version
            entry, state = current(store, root, entry, store.table(entry.table_id))
            for record in store.log(entry.table_id, recorded):
                yield Step(where, f"recorded what Lance had: {describe_entry(record)}")
    elif found.differences and found.newest == state.lance_version and (updates := _wrong(root, entry, state, found)):
        if not dry_run:
            state = store.commit(entry.table_id, updates, to_record(state.lance_version, state.dataset))
        yield Step(where, f"{'record' if dry_run else 'recorded'} what the dataset has: {_words(updates)}")
    for each in state.intents.values():
        if each.started_at > before or (each.together and is_restoring(state)):  # its tables are settled together
            continue
        if not dry_run:
            try:
                store.commit(entry.table_id, [CommitAbandoned(each.job_id)])
            except Conflict:  # the commit ended meanwhile
                continue
        yield Step(where, f"gave up the commit of job {each.job_id} ({each.kind}), which never reached Lance")


def _wrong(root: str, entry: TableEntry, state: TableState, found: DatasetAudit) -> list[TableUpdate]:
    """Returns the updates that record the content of the last recorded version of the dataset where the log differs."""
    dataset = open_dataset(dataset_location(root, entry), state.lance_version)
    updates = [each for each in missing_updates(dataset, state) if not isinstance(each, SetLanceVersion)]
    named = {i for update in updates for i in getattr(update, "removed", ())}
    return [*updates, *read_again(dataset, state, set(found.stale) - named)]


def _words(updates: Iterable[TableUpdate]) -> str:
    return "; ".join(map(describe_update, updates))
