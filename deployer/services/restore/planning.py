"""The plan of a restore: the changes that it would undo in each table, and checks that it can be done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deployer.datasets.dataset import open_dataset
from deployer.datasets.recovery.past_version import state_at
from deployer.datasets.storage.places import dataset_uri
from deployer.errors import NotFound, Refused
from deployer.live.reader import live_table
from deployer.plan.diff.lakes import diff
from deployer.plan.render.changes import describe
from deployer.services.restore.catalog import CatalogUndoing
from deployer.services.restore.points import RestorePoint, version_point
from deployer.services.savepoints.savepoints import tables_with
from deployer.state.model.entities import Job, TableEntry, TableState
from deployer.state.model.location import Location
from deployer.state.store import StateStore
from deployer.tables.inspect.protection import refuse_held_table
from deployer.tables.open_table import OpenTable, open_entry

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class Base:
    """The state of a table at the time of a preview. Each later commit to the table changes it."""

    dataset: int
    lance_version: int
    generation: int

    @staticmethod
    def of(state: TableState) -> Base:
        return Base(state.dataset, state.lance_version, state.properties.generation)


@dataclass(frozen=True, slots=True)
class Undoing:
    """The changes of one table that a restore of a savepoint or a version would undo.

    `rows`, `files`, `bytes` and `leaves` have the present number and the restored one. `removed` counts the rows of
    files that would be removed, and `back` those of files that would come back; a compaction counts in both. The
    restore would remove the records of `jobs` and bring back those of `jobs_back`. `changes` describes changes of
    columns, keys, partitions, indexes, settings and services, as a plan does. `versions` counts the versions of the
    dataset that would be undone; None where the table was rewritten since.
    """

    table: str
    table_id: str
    point: RestorePoint
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


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The changes of tables and of the catalog that a restore would undo. `catalog` is None where it is not
    restored."""

    tables: Sequence[Undoing]
    catalog: CatalogUndoing | None = None

    @property
    def changed_tables(self) -> list[Undoing]:
        return [each for each in self.tables if not each.nothing]

    @property
    def changes_catalog(self) -> bool:
        return self.catalog is not None and not self.catalog.nothing

    @property
    def nothing(self) -> bool:
        """Returns whether the tables and the catalog already have the restored content."""
        return not self.changed_tables and not self.changes_catalog


def preview_restore(
    store: StateStore, root: str, entries: Iterable[TableEntry], name: str, *, catalog: bool = False
) -> list[Undoing]:
    """Returns the changes that a restore of the savepoint would undo, for each of the tables that has the savepoint.

    Raises NotFound where no table has it, unless the `catalog` does, and Refused where its version or state no longer
    exists.
    """
    tables = tables_with(store, root, entries, name, catalog=catalog)
    return [undoing(table, RestorePoint.of_savepoint(table.state.savepoints[name])) for table in tables]


def preview_restore_at(store: StateStore, root: str, entry: TableEntry, at: str) -> Undoing:
    """Returns the changes of a table that a restore of a version or a time would undo; see `version_point` for `at`.

    Raises the errors of `version_point`, and Refused as `preview_restore` does.
    """
    table = open_entry(store, root, entry)
    return undoing(table, version_point(table, at))


def undoing(table: OpenTable, point: RestorePoint) -> Undoing:
    """Returns the changes that a restore would undo in one open table. Raises Refused as `preview_restore` does."""
    refuse_held_table(table.store, table.entry, "rows as they are now")
    now = table.state
    then = state_then(table, point)
    require_rows(table, point)
    files_now, files_then = set(now.files), set(then.files)
    spec_now, spec_then = (live_table(table.entry, state).spec for state in (now, then))
    changes = tuple(describe(change) for change in diff(spec_now, spec_then))
    leaves = len(now.leaves()), len(then.leaves())
    same = then.dataset == now.dataset
    return Undoing(
        table=table.entry.full_name,
        table_id=table.entry.table_id,
        point=point,
        base=Base.of(now),
        versions=now.lance_version - then.lance_version if same else None,
        rows=(now.files.rows, then.files.rows),
        files=(now.files.count, then.files.count),
        bytes=(now.files.bytes, then.files.bytes),
        leaves=leaves,
        removed=sum(file.rows for file in (files_now - files_then if same else files_now)),
        back=sum(file.rows for file in (files_then - files_now if same else files_then)),
        jobs=tuple(job for job_id, job in sorted(now.jobs.items()) if job_id not in then.jobs),
        jobs_back=tuple(job for job_id, job in sorted(then.jobs.items()) if job_id not in now.jobs),
        changes=changes,
        nothing=_content(now) == _content(then),
    )


def state_then(table: OpenTable, point: RestorePoint) -> TableState:
    """Returns the table's state at the restore point. Raises Refused where it is no longer kept."""
    try:
        then = table.store.table(table.entry.table_id, at=point.state_version)
    except NotFound as failure:
        raise Refused(
            f"the state of {point.label} is no longer kept: {failure.what}",
            where=table.address,
            remedy="choose another savepoint (`deployer savepoint list`) or version (`deployer history`)",
        ) from failure
    if then.dataset != point.dataset or then.lance_version >= point.lance_version:
        return then
    return state_at(_dataset(table, point), then)  # the log recorded the version only together with later ones


def place_of(table: OpenTable, point: RestorePoint) -> Location:
    """Returns the location of the restore point's dataset, relative to the root: the table's dataset or a retired one.

    Raises Refused where the dataset no longer exists.
    """
    if point.dataset == table.state.dataset:
        return table.entry.location
    found = {each.number: each for each in table.state.datasets}.get(point.dataset)
    if found is None or found.status != "retired":
        raise _gone(table, point)
    return found.location


def require_rows(table: OpenTable, point: RestorePoint) -> None:
    """Raises Refused where the dataset or the version of the restore point was removed."""
    _dataset(table, point)


def _dataset(table: OpenTable, point: RestorePoint) -> LanceDataset:
    try:
        return open_dataset(dataset_uri(table.root, place_of(table, point)), point.lance_version)
    except NotFound as failure:
        raise _gone(table, point) from failure


def _gone(table: OpenTable, point: RestorePoint) -> Refused:
    if point.savepoint is None:
        return Refused(
            f"{point.label} was removed", where=table.address, remedy="choose one that `deployer history` lists"
        )
    return Refused(
        f"{point.label} is of version {point.lance_version} of dataset {point.dataset}, which another program removed",
        where=table.address,
        remedy="put its folder back from a backup, choose another savepoint, or leave the table out with --table",
    )


def _content(state: TableState) -> Sequence[object]:
    properties = replace(state.properties, generation=0)
    services = {kind: state.services[kind] for kind in sorted(state.services)}
    return (state.dataset, set(state.files), state.schema, properties, dict(state.partitions), services)
