"""Rewrites a table in other row keys, sort keys, split points or another file format, and swaps it in by one commit.

The rows go from one pinned version of the table's dataset into a new one at a place of its own. Rows that were appended
meanwhile are copied in later rounds. The commit of the swap requires that the old dataset is still at the last copied
version, so that nothing recorded is lost. Until then the rewrite does not affect readers and writers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.datasets.dataset import latest_version, open_dataset
from deployer.datasets.lance_transactions import metadata_since
from deployer.datasets.recovery.unrecorded import missing_updates
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.removal import require_removable
from deployer.errors import Conflict, Corrupt, Interrupted, NotFound, Refused
from deployer.live.reader import has_unique_keys
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.specs.model import TableSpec
from deployer.state.commits import Part
from deployer.state.log.requirements import TableHasStatus
from deployer.state.log.updates import FilesAdded, RewriteStarted, SetTableDataset, SetTableProperties, TableRewritten
from deployer.state.model.entities import INSTANCE_LOG, Dataset, TableEntry, TableState
from deployer.state.model.files.files import Files
from deployer.state.model.location import Location, rewrite_location
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_begin_rewrite, to_redeclare, to_swap
from deployer.tables.evolution.rewrite.claims import wait_for_writers
from deployer.tables.evolution.rewrite.cleanup import give_up
from deployer.tables.evolution.rewrite.load import copy_rows
from deployer.tables.evolution.rewrite.lock import NO_JOB, Holder
from deployer.tables.evolution.rewrite.progress import Progress, Round
from deployer.tables.evolution.rewrite.source import changed_otherwise, plan_copy, plan_round, refuse_null_keys
from deployer.tables.evolution.rewrite.target import Target, commit_fragments, create_target, target_of
from deployer.tables.ingest.commit.computed_files import with_copied_definitions
from deployer.tables.ingest.keys.repeated import repeated_keys
from deployer.tables.ingest.request import LoadWithSpark
from deployer.tables.layout.partitions.split_points import declared_partitions
from deployer.tables.open_table import OpenTable, open_entry

if TYPE_CHECKING:
    pass

RESTARTS = 3  #: how often a rewrite begins again because rows were changed (not only added) during the copy
ROUNDS = 12  #: how many rounds of added rows are copied before the rewrite fails because others keep adding rows


def rewrite_table(
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    with_spark: LoadWithSpark | None = None,
    on_progress: OnProgress = no_progress,
    holder: Holder = NO_JOB,
) -> None:
    """Gives the table the row keys, with their types, sort keys, split points and storage of `spec`; does nothing when
    it has them.

    Resumes an interrupted rewrite to the same target, and abandons one to another target. Waits for runs that write
    columns of the table. Raises Refused when a new row key is null in some rows, Conflict when others change the table
    faster than it can be copied.
    """
    for _ in range(RESTARTS):
        found = to_copy(store, root, table_id, spec)
        if found is not None and wait_for_writers(store, table_id, spec.address, on_progress):
            found = to_copy(store, root, table_id, spec)
        if found is None:
            return
        table, target = found
        refuse_null_keys(table, target)
        if _rewrite(store, table, spec, target, with_spark, on_progress, holder):
            return
    raise Conflict(
        "rows kept changing while the table was being rewritten",
        where=spec.address,
        remedy="run `deployer up` again when there are fewer writers",
    )


def to_copy(store: StateStore, root: str, table_id: str, spec: TableSpec) -> tuple[OpenTable, Target] | None:
    """Returns the table and the target of its copy; None where no copy is needed.

    Settings that affect only new files are recorded.
    """
    table = _open(store, root, table_id)
    target = target_of(table, spec)
    if target.is_recorded(table):
        return None
    if target.needs_no_files(table):
        _record(store, table, target)
        return None
    return table, target


def _open(store: StateStore, root: str, table_id: str) -> OpenTable:
    return open_entry(store, root, store.instance().tables[table_id])


def _record(store: StateStore, table: OpenTable, target: Target) -> None:
    """Records settings that affect only new files."""
    unchanged = to_redeclare(table.state.properties.generation)
    store.commit(table.entry.table_id, [SetTableProperties(target.properties(table.state))], unchanged)


def _rewrite(
    store: StateStore,
    table: OpenTable,
    spec: TableSpec,
    target: Target,
    with_spark: LoadWithSpark | None,
    on_progress: OnProgress,
    holder: Holder,
) -> bool:
    """Runs one rewrite to its end; returns False when it has to begin again."""
    number, location = _begin(store, table, target)
    progress = Progress(dataset_uri(table.root, location))
    with progress.held(holder) as goes_on:
        if _status(store, table.entry.table_id, number) != "writing":
            return False  # another process gave it up before it was held here
        if not goes_on:
            give_up(store, table.root, table.entry.table_id, number, location)
            return False
        new = dataset_uri(table.root, location)
        create_target(new, table, target)
        reached("tables.rewrite.created")
        tree = progress.tree()
        if tree is None:
            tree = declared_partitions(spec)
            progress.choose_tree(tree)
        for _ in range(ROUNDS):
            table = _open(store, table.root, table.entry.table_id)
            if target_of(table, spec).fingerprint != target.fingerprint:
                return False
            copied = _copied_version(new, progress, table, target, number)
            if copied == table.state.lance_version:
                _refuse_repeated_keys(store, table, spec, number, location)
            if copied == table.state.lance_version and _swap(store, table, target, number, location):
                reached("tables.rewrite.swapped")
                progress.remove()
                return True
            if copied == table.state.lance_version:
                wait_for_writers(store, table.entry.table_id, spec.address, on_progress)
                continue
            try:
                planned = _next_round(new, progress, table, target, number, copied)
                if planned is None:
                    give_up(store, table.root, table.entry.table_id, number, location)
                    return False
                load = plan_copy(table, planned, target, new)
                ledger = progress.ledger(planned.number)
                written = copy_rows(load, ledger, with_spark, on_progress, spec.address)
            except Interrupted:
                raise Interrupted(
                    "stopped while its rows are being copied; the table is unchanged",
                    where=spec.address,
                    remedy="the next `deployer up` resumes with the rows that are left",
                ) from None
            except (Refused, NotFound) as failure:
                give_up(store, table.root, table.entry.table_id, number, location)
                if isinstance(failure, Refused):
                    raise
                return False  # the copied version was removed
            reached("tables.rewrite.copied")
            copied_files = with_copied_definitions(written, table.state, table.dataset(), new)
            commit_fragments(new, _job_id(table.entry, number, planned.number), copied_files)
            reached("tables.rewrite.committed")
    raise Conflict(
        "rows are added faster than they can be copied; the next `deployer up` resumes the rewrite where it stopped",
        where=spec.address,
        remedy="run it again when there are fewer writers",
    )


def _refuse_repeated_keys(
    store: StateStore, table: OpenTable, spec: TableSpec, number: int, location: Location
) -> None:
    """Raises Refused, and abandons the copy, where rows that were added meanwhile repeat the new unique keys."""
    if not (has_unique_keys(table.state) and spec.unique) or set(table.state.properties.row_keys) <= set(spec.row_keys):
        return
    found = repeated_keys(open_dataset(dataset_uri(table.root, location)), spec.row_keys)
    if found.rows:
        give_up(store, table.root, table.entry.table_id, number, location)
        raise Refused(
            f"{found.rows:,} of {table.state.files.rows:,} rows have row keys that another row has, such as "
            f"{' and '.join(found.examples)}; the table is unchanged",
            where=table.address,
            remedy="remove all but one of the rows of each key, choose other keys, or leave `unique` out",
        )


def _begin(store: StateStore, table: OpenTable, target: Target) -> tuple[int, Location]:
    """Returns the number and place of the dataset to write: of the interrupted rewrite, or new ones."""
    table_id, state = table.entry.table_id, table.state
    for each in state.datasets:
        if each.status == "writing" and each.target == target.fingerprint:
            require_removable(store, table.root, table_id, each.location, unfinished=True)  # it is written to
            return each.number, each.location
    for each in state.datasets:
        if each.status == "writing":
            require_removable(store, table.root, table_id, each.location, unfinished=True)
            with Progress(dataset_uri(table.root, each.location)).held():
                give_up(store, table.root, table_id, each.number, each.location)
    number = max((each.number for each in state.datasets), default=1) + 1
    location = rewrite_location(table.entry.location, table_id, number)
    started = RewriteStarted(number, location, target.fingerprint)
    store.commit(table_id, [started], to_begin_rewrite(state.dataset, state.properties.generation))
    reached("tables.rewrite.started")
    return number, location


def _status(store: StateStore, table_id: str, number: int) -> str:
    datasets: dict[int, Dataset] = {each.number: each for each in store.table(table_id).datasets}
    return datasets[number].status


def _job_id(entry: TableEntry, number: int, round_number: int) -> str:
    return f"rewrite-{entry.table_id[:8]}-{number}-{round_number}"


def _rounds_done(new: str, entry: TableEntry, number: int) -> int:
    """Returns the number of rounds committed to the new dataset, according to Lance, whatever the notes contain."""
    done = {info.job_id for infos in metadata_since(open_dataset(new), 0).values() for info in infos}
    return next(i for i in range(len(done) + 1) if _job_id(entry, number, i + 1) not in done)


def _copied_version(new: str, progress: Progress, table: OpenTable, target: Target, number: int) -> int | None:
    done = _rounds_done(new, table.entry, number)
    last = progress.round(done, table.location, target.kinds) if done else None
    return last.source_version if last else None


def _next_round(
    new: str, progress: Progress, table: OpenTable, target: Target, number: int, copied: int | None
) -> Round | None:
    """Returns the next round, planned before or now; None when copied rows have changed."""
    done = _rounds_done(new, table.entry, number)
    planned = progress.round(done + 1, table.location, target.kinds)
    if planned is None:
        before = None if copied is None else open_dataset(table.location, copied)
        if before is not None and changed_otherwise(before, table.dataset()):
            return None
        planned = plan_round(table, target, done + 1, progress.tree() or (), before)
        progress.plan_round(planned, target.kinds)
        reached("tables.rewrite.planned")
    return planned


def _swap(store: StateStore, table: OpenTable, target: Target, number: int, location: Location) -> bool:
    """Makes the new dataset the table's dataset; returns False when the table has changed since the copy."""
    state, entry = table.state, table.entry
    new = open_dataset(dataset_uri(table.root, location))
    tree = Progress(dataset_uri(table.root, location)).tree() or ()
    properties = replace(state.properties, row_keys=target.row_keys, sort_keys=target.sort_keys)
    empty = TableState(
        table_id=state.table_id,
        properties=properties,
        schema=new.schema.serialize().to_pybytes(),
        lance_version=1,
        partitions={each.partition_id: each for each in tree},
        files=Files(),
    )
    added = [update for update in missing_updates(new, empty) if isinstance(update, FilesAdded)]
    files = tuple(file for update in added for file in update.files)
    rows = sum(file.rows for file in files)
    if rows != state.files.rows:
        raise Corrupt(
            f"the copy holds {rows:,} rows and the table {state.files.rows:,}; the table is unchanged",
            where=table.address,
            remedy="run `deployer up` again, and report it when it happens again",
        )
    rewritten = TableRewritten(number, entry.location, empty.schema, new.version, tree, files)
    reached("tables.rewrite.before-swap")
    if latest_version(table.location) != state.lance_version:
        return False  # by a program that does not record its commits; its rows are copied up to here too
    try:
        store.commit_all(
            [
                Part(
                    INSTANCE_LOG,
                    [SetTableDataset(entry.table_id, location, number)],
                    [TableHasStatus(entry.table_id, "active")],
                ),
                Part(
                    entry.table_id,
                    [SetTableProperties(target.properties(state)), rewritten],
                    to_swap(state.dataset, state.properties.generation, state.lance_version),
                ),
            ]
        )
    except Conflict:
        return False
    return True
