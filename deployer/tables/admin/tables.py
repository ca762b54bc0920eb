"""Creates and changes tables; `deletion` removes them. Every step can be repeated after a crash.

A table is registered before its dataset is written, and its entry is removed after its dataset, so that the state store
has everything on storage.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, assert_never

from deployer.datasets.dataset import create_dataset
from deployer.datasets.storage.places import dataset_uri
from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.live.model import LiveTable
from deployer.live.services import declared_service, service_spec
from deployer.plan import changes as c
from deployer.plan import stages as s
from deployer.plan.assess.unsupported import kept_keys, refusal, refuse_unsupported
from deployer.plan.diff.lakes import diff_tables
from deployer.plan.render.services import service_name
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.specs.declarations.embeddings import embedding_to_json
from deployer.specs.model import ServiceSpec, TableSpec
from deployer.specs.serialized.properties import declared_properties
from deployer.specs.serialized.retention import holds_to_json, retention_to_json
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.view import view_to_stored
from deployer.state.commits import Part
from deployer.state.log.requirements import LogEmpty, TableHasStatus
from deployer.state.log.service_updates import PutService, RemoveService
from deployer.state.log.updates import (
    CreateTable,
    RegisterTable,
    RenameTable,
    SetTableProperties,
    SetTableStatus,
)
from deployer.state.model.declared_properties import (
    EMBEDDING,
    HOLDS,
    MAX_ROWS_PER_LEAF,
    RETAIN_CHANGES,
    RETENTION,
    UNIQUE,
    VIEW,
)
from deployer.state.model.entities import INSTANCE_LOG, JSON, TableEntry
from deployer.state.model.location import new_location
from deployer.state.store import StateStore
from deployer.state.transactions.services import to_alter_service, to_create_service, to_remove_service
from deployer.state.transactions.tables import to_register, to_rename
from deployer.tables.admin.deletion import delete_table, remove_unfinished
from deployer.tables.evolution.schema.apply import apply_column_change, declare_unique
from deployer.tables.evolution.schema.check import refuse_what_rows_forbid
from deployer.tables.inspect.protection import require_as_planned
from deployer.tables.inspect.recorded import recorded_table
from deployer.tables.layout.indexes.apply import apply_index_change, settle_indexes
from deployer.tables.layout.indexes.parts import PlanBuild, in_one_part
from deployer.tables.layout.partitions.split_points import declared_partitions

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.tables.ingest.request import LoadWithSpark


class ViewBuilder(Protocol):
    """Adds the hidden columns of a view for refreshes, and builds a view again for another query."""

    def with_stored_columns(self, store: StateStore, root: str, spec: TableSpec) -> TableSpec: ...

    def rebuild(
        self, store: StateStore, root: str, table_id: str, spec: TableSpec, on_progress: OnProgress
    ) -> None: ...


#: Rewrites a table on another machine, as `deployer.tables.evolution.rewrite.rewrite.rewrite_table` does on this one.
RewriteElsewhere = Callable[[StateStore, str, str, TableSpec, OnProgress], None]


def create_table(
    store: StateStore,
    root: str,
    spec: TableSpec,
    owner: str,
    with_spark: LoadWithSpark | None = None,
    on_progress: OnProgress = no_progress,
    *,
    allow_destroy: bool = False,
    elsewhere: RewriteElsewhere | None = None,
    plan_build: PlanBuild = in_one_part,
    declared: Mapping[str, JSON] | None = None,
    views: ViewBuilder | None = None,
) -> str:
    """Creates the table and returns its id; resumes an interrupted creation.

    `declared` is recorded for a new table in addition to `spec`. `views` builds views, for specs with a query. A table
    of that name that `owner` created before is changed to `spec`. Raises Conflict when the name belongs to a table that
    `owner` does not manage, and as `delete_table` does where a deletion of that name was interrupted.
    """
    entry = store.instance().by_name(spec.full_name)
    if entry is not None and entry.status == "deleting":
        delete_table(store, root, entry.table_id, allow_destroy=allow_destroy)
        entry = None
    stored = spec
    if spec.view is not None and views is not None and (entry is None or entry.status == "creating"):
        stored = views.with_stored_columns(store, root, spec)
    if entry is None:
        entry = _register(store, spec)
    if entry.status == "active":
        _refuse_unless_owned(recorded_table(store, root, entry), spec, owner)
        update_table(
            store, root, entry.table_id, spec, with_spark, on_progress, elsewhere, plan_build=plan_build, views=views
        )
        return entry.table_id
    remove_unfinished(store, root, entry)
    reached("tables.create.registered")
    dataset = _create_dataset(root, entry, stored)
    reached("tables.create.written")
    properties = declared_properties(spec, owner)
    properties = replace(properties, declared={**properties.declared, **(declared or {})})
    schema = dataset.schema.serialize().to_pybytes()
    create = CreateTable(properties, schema, dataset.version, declared_partitions(spec))
    store.commit_all(
        [
            Part(
                INSTANCE_LOG,
                [SetTableStatus(entry.table_id, "active")],
                [TableHasStatus(entry.table_id, "creating")],
            ),
            Part(entry.table_id, [create, *first_services(spec)], [LogEmpty()]),
        ]
    )
    settle_indexes(store, root, entry.table_id, spec)
    return entry.table_id


def update_table(
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    with_spark: LoadWithSpark | None = None,
    on_progress: OnProgress = no_progress,
    elsewhere: RewriteElsewhere | None = None,
    *,
    renamed: bool = False,
    planned_with: TableSpec | None = None,
    plan_build: PlanBuild = in_one_part,
    views: ViewBuilder | None = None,
) -> None:
    """Applies the differences between the live table and `spec`.

    If one part is refused, nothing is changed. `renamed`: a plan showed that this is the table, whatever its name.
    Without it, a table that `spec` does not name may differ only by its name. Changes are made in the stages of
    `deployer.plan.stages`. After a failure, the next call makes the remaining changes. `with_spark` rewrites tables
    that are too large for one process; `elsewhere` rewrites a table with rows. `planned_with` is the table of the plan:
    raises Conflict when its declaration has changed since. `plan_build` plans builds of indexes, `views` builds views.
    """
    entry = store.instance().tables.get(table_id)
    if entry is None or entry.status != "active":
        raise NotFound("the table does not exist any more", where=spec.address, remedy="preview again")
    live = recorded_table(store, root, entry)
    if planned_with is not None:
        require_as_planned(planned_with, live.spec)
    changes = diff_tables(live.spec, spec)
    if (
        not renamed
        and entry.full_name not in (spec.full_name, spec.former_name)
        and any(not isinstance(change, c.RenameTable) for change in changes)
    ):
        raise Refused(  # Pulumi's state, which any program may have written, has another id
            f"Pulumi's state has the id of {entry.address} for it, and the two differ by more than their name",
            where=spec.address,
            remedy=f"run `deployer up`, which shows it, or `deployer table rename {entry.full_name} {spec.full_name}`; "
            "if it is not that table, check `deployer stack export`",
        )
    keys = kept_keys(live.spec, spec)
    refuse_unsupported(changes, keys, has_rows=live.statistics.rows > 0)
    refuse_what_rows_forbid(root, live, changes)
    if live.statistics.rows == 0 and any(refusal(change, keys) for change in changes):
        from deployer.tables.evolution.rewrite.empty_dataset import (
            redeclare_empty,  # it loads Arrow, which a preview does not need
        )

        live = redeclare_empty(store, root, live, spec, changes)
        changes = diff_tables(live.spec, spec)

    def rewrite() -> None:
        if views is not None and any(isinstance(change, c.ChangeViewQuery) for change in changes):
            views.rebuild(store, root, table_id, spec, on_progress)
            return
        if elsewhere is not None and live.statistics.rows:
            elsewhere(store, root, table_id, spec, on_progress)
            return
        from deployer.tables.evolution.rewrite.rewrite import (
            rewrite_table,
        )  # it loads Arrow, which previews do not need

        rewrite_table(store, root, table_id, spec, with_spark, on_progress)

    for stage in s.stages(changes, spec):
        _execute(stage, store, root, live.table_id, spec, rewrite, on_progress, plan_build)


def _register(store: StateStore, spec: TableSpec) -> TableEntry:
    table_id = uuid.uuid4().hex
    try:
        location = new_location(spec.database, spec.name, table_id)
    except ValueError as error:
        raise InvalidInput(
            f"a table cannot be stored there: {error}", where=spec.address, remedy="use another name"
        ) from None
    entry = TableEntry(table_id, spec.database, spec.name, location, "creating", int(time.time() * 1000))
    store.commit(INSTANCE_LOG, [RegisterTable(entry)], to_register(spec.database, spec.name))
    return entry


def _refuse_unless_owned(live: LiveTable, spec: TableSpec, owner: str) -> None:
    if live.owner != owner:
        raise Conflict(
            f"the table exists already, and {live.owner or 'no stack'} manages it",
            where=spec.address,
            remedy="choose another name",
        )


def _create_dataset(root: str, entry: TableEntry, spec: TableSpec) -> LanceDataset:
    stable = spec.storage.stable_row_ids
    return create_dataset(
        dataset_uri(root, entry.location),
        arrow_schema(spec.columns),
        spec.storage.data_storage_version,
        stable_row_ids=not spec.row_keys if stable is None else stable,
    )


def _execute(
    stage: s.Stage,
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    rewrite: Callable[[], None],
    on_progress: OnProgress,
    plan_build: PlanBuild,
) -> None:
    """Executes one stage of the changes to `spec`, which passed `refuse_unsupported`."""
    match stage:
        case s.RenameTable():
            store.commit(
                INSTANCE_LOG,
                [RenameTable(table_id, spec.database, spec.name)],
                to_rename(table_id, spec.database, spec.name),
            )
        case s.DropIndexes(changes):
            for drop in changes:
                apply_index_change(store, root, table_id, drop, on_progress)
        case s.EvolveSchema(columns) | s.EvolveFormerKeys(columns) | s.DropColumns(columns):
            for column in columns:
                apply_column_change(store, root, table_id, spec, column, on_progress)
        case s.DropUnique():
            store.declare(table_id, {UNIQUE: None})
        case s.RewriteTable():
            rewrite()
        case s.SetConstraints(constraints):
            for constraint in constraints:
                match constraint:
                    case c.SetUnique():
                        declare_unique(store, root, table_id, constraint)
                    case c.ChangeLeafLimit(after=limit):
                        store.declare(table_id, {MAX_ROWS_PER_LEAF: limit})
                    case c.ChangeRetention(after=keep):
                        store.declare(table_id, {RETENTION: retention_to_json(keep) if keep else None})
                    case c.ChangeHolds(after=holds):
                        store.declare(table_id, {HOLDS: holds_to_json(holds) or None})
                    case c.ChangeRetainedChanges(after=kept_for):
                        store.declare(table_id, {RETAIN_CHANGES: kept_for})
                    case _:
                        assert_never(constraint)
        case s.BuildIndexes(indexes):
            for index in indexes:
                apply_index_change(store, root, table_id, index, on_progress, plan_build)
            settle_indexes(store, root, table_id, spec, on_progress, plan_build)
        case s.ChangeServices(services):
            for service in services:
                apply_service_change(store, table_id, service)
        case s.SetProperties(properties):
            for change in properties:
                if isinstance(change, c.ChangeMaxStaleness):
                    if spec.view is not None:
                        store.declare(table_id, {VIEW: view_to_stored(spec.view)})
                elif isinstance(change, c.ChangeEmbedding):
                    form = embedding_to_json(change.after) if change.after is not None else None
                    store.declare(table_id, {EMBEDDING: form})
                else:
                    store.commit(table_id, [SetTableProperties(_property(change))])
        case _:
            assert_never(stage)


def _property(
    change: c.SetOnline | c.SetDeletionProtection | c.ChangeDescription | c.ChangeTags,
) -> dict[str, JSON]:
    match change:
        case c.SetOnline(online=online):
            return {"online": online}
        case c.SetDeletionProtection(protected=protected):
            return {"deletion_protection": protected}
        case c.ChangeDescription(after=description):
            return {"description": description}
        case c.ChangeTags(after=tags):
            return {"tags": dict(tags)}
        case _:
            assert_never(change)


def first_services(spec: TableSpec) -> list[PutService]:
    """Returns the updates that attach the services of a new table."""
    return [PutService(declared_service(service)) for service in spec.services]


def apply_service_change(store: StateStore, table_id: str, change: c.ServiceChange) -> None:
    """Applies a change of a service. Raises Conflict when another process changes it at the same time, or when a
    service to detach is running."""
    kind = service_name(change).upper()
    before = next((each for each in store.table(table_id).services.values() if each.kind == kind), None)
    live = service_spec(before) if before else ServiceSpec(kind)
    match change:
        case c.CreateService(service=wanted):
            spec = wanted
        case c.DeleteService():
            if before is not None:
                store.commit(table_id, [RemoveService(before.kind)], to_remove_service(before.kind))
            return
        case c.ChangeTrigger(after=trigger):
            spec = replace(live, trigger=trigger)
        case c.ChangeServiceOptions(after=options, after_raw=raw):
            spec = replace(live, options=options, unsafe_raw=raw)
        case c.MoveServiceToCluster(after=cluster):
            spec = replace(live, cluster=cluster)
        case _:
            assert_never(change)
    service = declared_service(spec, before)
    requires = to_alter_service(before) if before else to_create_service(service.kind)
    store.commit(table_id, [PutService(service)], requires)
