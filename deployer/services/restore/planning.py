"""What a restore would undo, table by table, and whether it can: found out before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deployer.errors import NotFound, Refused
from deployer.live.lance_io import open_dataset
from deployer.live.reader import live_table
from deployer.plan.diff import diff
from deployer.plan.words import describe
from deployer.services.tagged_savepoints import tables_with
from deployer.state.location import Location
from deployer.state.model import Job, TableEntry, TableState
from deployer.state.services import Savepoint
from deployer.state.store import StateStore
from deployer.tables.dataset import OpenTable
from deployer.tables.storage import dataset_uri


@dataclass(frozen=True, slots=True)
class Base:
    """What a preview was made on: who commits to the table afterwards changes it."""

    dataset: int
    lance_version: int
    generation: int

    @staticmethod
    def of(state: TableState) -> Base:
        return Base(state.dataset, state.lance_version, state.properties.generation)


@dataclass(frozen=True, slots=True)
class Undoing:
    """What going back to a savepoint would undo of one table.

    `rows` and the like are as they are and as they would be. `removed` and `back`: rows of files that would go, and of
    files that would come back; a compaction's are in both. `jobs` would be forgotten, `jobs_back` known again;
    `changes` are those of columns, keys, partitions, indexes, settings and services, as a plan words them. `versions`
    of the dataset would be undone; None where the table was rewritten since.
    """

    table: str
    table_id: str
    savepoint: Savepoint
    base: Base
    versions: int | None
    rows: tuple[int, int]
    files: tuple[int, int]
    bytes: tuple[int, int]
    leaves: tuple[int, int]
    removed: int
    back: int
    jobs: tuple[Job, ...]
    jobs_back: tuple[Job, ...]
    changes: tuple[str, ...]
    nothing: bool


def preview_restore(store: StateStore, root: str, entries: Iterable[TableEntry], name: str) -> list[Undoing]:
    """What going back to the savepoint would undo of those of the tables that have it.

    Raises NotFound when none has it, Refused where its version or its state is not there any more.
    """
    return [undoing(table, name) for table in tables_with(store, root, entries, name)]


def undoing(table: OpenTable, name: str) -> Undoing:
    """`preview_restore` of one open table that has the savepoint."""
    now, savepoint = table.state, table.state.savepoints[name]
    then = state_then(table, savepoint)
    require_rows(table, savepoint)
    files_now, files_then = set(now.files), set(then.files)
    spec_now, spec_then = (live_table(table.entry, state).spec for state in (now, then))
    changes = tuple(describe(change) for change in diff(spec_now, spec_then))
    leaves = len(now.leaves()), len(then.leaves())
    same = then.dataset == now.dataset
    return Undoing(
        table.entry.full_name,
        table.entry.table_id,
        savepoint,
        Base.of(now),
        now.lance_version - then.lance_version if same else None,
        (now.files.rows, then.files.rows),
        (now.files.count, then.files.count),
        (now.files.bytes, then.files.bytes),
        leaves,
        sum(file.rows for file in (files_now - files_then if same else files_now)),
        sum(file.rows for file in (files_then - files_now if same else files_then)),
        tuple(job for job_id, job in sorted(now.jobs.items()) if job_id not in then.jobs),
        tuple(job for job_id, job in sorted(then.jobs.items()) if job_id not in now.jobs),
        changes,
        _content(now) == _content(then),
    )


def state_then(table: OpenTable, savepoint: Savepoint) -> TableState:
    """The table's state at the savepoint. Raises Refused when it is not kept."""
    try:
        return table.store.table(table.entry.table_id, at=savepoint.state_version)
    except NotFound as failure:
        raise Refused(
            f"the state that savepoint {savepoint.name} is of is not kept: {failure.what}",
            where=table.address,
            remedy="choose another savepoint: `deployer savepoint list`",
        ) from failure


def place_of(table: OpenTable, savepoint: Savepoint) -> Location:
    """Where the dataset is that the savepoint is of, relative to the root; the table's own or a retired one."""
    if savepoint.dataset == table.state.dataset:
        return table.entry.location
    found = {each.number: each for each in table.state.datasets}.get(savepoint.dataset)
    if found is None or found.status != "retired":
        raise _gone(table, savepoint)
    return found.location


def require_rows(table: OpenTable, savepoint: Savepoint) -> None:
    """Raises Refused when the dataset or the version that the savepoint is of was removed by others."""
    try:
        open_dataset(dataset_uri(table.root, place_of(table, savepoint)), savepoint.lance_version)
    except NotFound as failure:
        raise _gone(table, savepoint) from failure


def _gone(table: OpenTable, savepoint: Savepoint) -> Refused:
    return Refused(
        f"savepoint {savepoint.name} is of version {savepoint.lance_version} of dataset {savepoint.dataset}, which was "
        "removed by other means than deployer's",
        where=table.address,
        remedy="put its folder back from a backup, choose another savepoint, or leave the table out with --table",
    )


def _content(state: TableState) -> Sequence[object]:
    properties = replace(state.properties, generation=0)
    services = {kind: state.services[kind] for kind in sorted(state.services)}
    return (state.dataset, set(state.files), state.schema, properties, dict(state.partitions), services)
