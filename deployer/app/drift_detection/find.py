"""Finds drift: compares Pulumi's state of the stack with the live state. Drift has the form of the planner's
changes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from deployer.app.live_state import read_live
from deployer.app.stack.engine import engine_for
from deployer.app.stack.lost_state import refuse_lost_tables
from deployer.app.stack.owner import refuse_others_lake
from deployer.app.stack.state import Applied, applied_resources
from deployer.app.workspace import Workspace
from deployer.datasets.dataset import dataset_location
from deployer.datasets.errors import lance_errors
from deployer.errors import DeployerError, NotFound
from deployer.live.model import LiveLake, LiveTable, Unreadable
from deployer.live.provenance import (
    Origin,
    column_origin,
    index_origin,
    instance_origin,
    property_origin,
    removal_origin,
    service_origin,
    with_renames,
)
from deployer.live.reader import read_lake
from deployer.live.reader import unreadable as as_unreadable
from deployer.plan import changes as c
from deployer.plan.diff.lakes import diff
from deployer.plan.render.services import service_name
from deployer.plan.targeting.targets import Targets, resolve_targets
from deployer.platform.system.progress import OnProgress, Progress, counted, no_progress
from deployer.provider.resources.inputs import dataset_of, table_of
from deployer.provider.resources.live_datasets import with_datasets
from deployer.specs.model import Lake, TableSpec
from deployer.specs.serialized.specs import instance_from_json
from deployer.specs.types.dataset import DatasetSpec
from deployer.specs.values.root import resolve_root
from deployer.state import open_reader
from deployer.state.model.entities import TableEntry
from deployer.state.model.lost_store import refuse_new_store
from deployer.state.reader import StateReader
from deployer.tables.importing.adopt import location_under, plain_datasets

#: the property of the state store that a kind of change affects
_PROPERTIES: Mapping[type, str] = {
    c.SetOnline: "online",
    c.SetDeletionProtection: "deletion_protection",
    c.ChangeDescription: "description",
    c.ChangeTags: "tags",
    c.ChangeRowKeys: "row_keys",
    c.ChangeSortKeys: "sort_keys",
    c.ChangeStorage: "storage",
    c.SetUnique: "declared",
    c.ChangeSplitPoints: "declared",
    c.ChangeLeafLimit: "declared",
    c.ChangeEmbedding: "declared",
    c.ChangeRetention: "declared",
    c.ChangeHolds: "declared",
    c.ChangeRetainedChanges: "declared",
    c.ChangeViewQuery: "declared",
    c.ChangeMaxStaleness: "declared",
}


@dataclass(frozen=True, slots=True)
class DriftItem:
    """One difference: the change from the applied resource to the live one, and who made it where that is known."""

    address: str
    change: c.Change
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class Undeclared:
    """A resource in the lake that no specs declare."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences by address, and what the lake has besides; `live` is the state in which they were found.

    `tables` are the live tables by the addresses at which they were applied, whatever their current names; tables that
    are gone are left out. Whether tables that are `unreadable` differ is unknown.
    """

    items: tuple[DriftItem, ...]
    undeclared: tuple[Undeclared, ...]
    lake: Lake
    live: LiveLake
    tables: Mapping[str, TableSpec]
    unreadable: tuple[Unreadable, ...] = ()
    targets: Targets | None = None  #: what was compared, if not everything
    #: live datasets, by the addresses at which they were applied
    datasets: Mapping[str, DatasetSpec] = field(default_factory=dict)


def find_drift(workspace: Workspace, given: Sequence[str] = (), on_progress: OnProgress = no_progress) -> Drift:
    """Returns the differences between the live state and what this stack last applied. `given` are the targets; without
    targets, everything is compared.

    Raises NotFound when the stack never applied anything. Raises Refused when the stack never applied anything and
    another stack manages the lake, or when the lake's state store is missing.
    """
    on_progress(Progress("reading the specs", 0, None, ""))
    lake = workspace.lake()
    on_progress(Progress("reading what was last applied", 0, None, ""))
    applied = applied_resources(workspace, engine_for(workspace, lake))
    if not applied:
        refuse_others_lake(workspace, lake, read_live(workspace.root(lake)))
        raise NotFound(
            f"stack {workspace.stack} never applied anything", where=workspace.dir, remedy="run `deployer up` first"
        )
    root = _applied_root(workspace, lake, applied)
    try:
        store = open_reader(root)
    except NotFound:  # there is no store, so no table was compared
        refuse_new_store(root)
        refuse_lost_tables(workspace, root, applied)
        return Drift((), (), lake, LiveLake(None), {})
    with closing(store):
        targets = None
        if given:
            entries = {table_id: entry.address for table_id, entry in store.instance().tables.items()}
            known = with_datasets(LiveLake(None), store.instance()).datasets
            entries |= {each.dataset_id: address for address, each in known.items()}
            ids = {address: each.id for address, each in applied.items()}
            targets = resolve_targets(given, lake, entries, ids)
            applied = {address: each for address, each in applied.items() if address in targets.addresses}
        only = targets.addresses if targets else None
        live = with_datasets(read_lake(store, root, only, on_progress), store.instance(), only)
        live = live.with_applied({address: each.id for address, each in applied.items()})
        items, unreadable = _items(store, root, applied, live, on_progress)
        tables = {address: live.tables[now].spec for address, now in live.applied.items() if now in live.tables}
        datasets = {
            address: by_id[each.id].spec
            for by_id in [{each.dataset_id: each for each in live.datasets.values()}]
            for address, each in applied.items()
            if each.id in by_id
        }
        undeclared = [*_unknown_tables(workspace, live)]
        if targets is None:
            undeclared += _plain_datasets(store, root)
        return Drift(items, tuple(undeclared), lake, live, tables, unreadable, targets, datasets)


def _applied_root(workspace: Workspace, lake: Lake, applied: Mapping[str, Applied]) -> str:
    """Returns the root at which the lake was applied; the specs may have another root now."""
    roots = (each.inputs.get("root") for address, each in applied.items() if address.startswith("instance/"))
    return resolve_root(workspace.dir, str(next(roots, None) or lake.instance.root))


def _items(
    store: StateReader, root: str, applied: Mapping[str, Applied], live: LiveLake, on_progress: OnProgress
) -> tuple[tuple[DriftItem, ...], tuple[Unreadable, ...]]:
    """Returns the differences, and the tables whose differences are unknown."""
    unreadable = {table.table_id: table for table in live.unreadable.values()}
    entries = store.instance().tables
    items: list[DriftItem] = []
    for address, resource in counted(sorted(applied.items()), len(applied), "comparing", "resources", on_progress):
        if address.startswith("instance/"):
            changes = diff(instance_from_json(resource.inputs), live.instance)
            items += (DriftItem(address, change, instance_origin(store)) for change in changes)
        elif address.startswith("dataset/"):
            items += _of_dataset(store, address, resource, live)
        elif resource.id not in unreadable:
            entry = entries.get(resource.id)
            try:
                with lance_errors(dataset_location(root, entry) if entry else root):
                    items += _of_table(
                        store, root, address, resource, live.tables.get(live.applied.get(address, "")), entry
                    )
            except DeployerError as error:
                if entry is None:
                    raise
                unreadable[resource.id] = as_unreadable(entry, error)
    return tuple(items), tuple(sorted(unreadable.values(), key=lambda each: each.address))


def _of_dataset(store: StateReader, address: str, resource: Applied, live: LiveLake) -> list[DriftItem]:
    from deployer.catalog.datasets.declared.origin import dataset_origin  # it loads Arrow and Rerun's messages

    found = next((each.spec for each in live.datasets.values() if each.dataset_id == resource.id), None)
    changes = diff(dataset_of(resource.inputs), found)
    return [DriftItem(address, change, dataset_origin(store, resource.id, change)) for change in changes]


def _of_table(
    store: StateReader, root: str, address: str, resource: Applied, table: LiveTable | None, entry: TableEntry | None
) -> list[DriftItem]:
    applied_spec = table_of(resource.inputs)
    spec = table.spec if table else None
    if spec and entry:
        columns = with_renames(root, entry, applied_spec.columns, spec.columns)
        spec = replace(spec, columns=columns)
    return [
        DriftItem(address, change, _origin(store, root, resource, change, entry if table else None))
        for change in diff(applied_spec, spec)
    ]


def _origin(
    store: StateReader, root: str, resource: Applied, change: c.Change, entry: TableEntry | None
) -> Origin | None:
    """Returns who made a change; `entry` is None when the table is gone."""
    if entry is None or isinstance(change, c.RenameTable):
        return removal_origin(store, resource.id)
    if isinstance(change, c.ColumnChange):
        return column_origin(store, root, entry, change.column[0] if change.column else "")
    if isinstance(change, c.IndexChange):
        return index_origin(store, root, entry, _index_name(change))
    if isinstance(change, c.ServiceChange):
        return service_origin(store, resource.id, service_name(change).upper())
    return property_origin(store, resource.id, _PROPERTIES.get(type(change), ""))


def _index_name(change: c.IndexChange) -> str:
    return change.after.name if isinstance(change, c.RebuildIndex | c.RenameIndex) else change.index.name


def _unknown_tables(workspace: Workspace, live: LiveLake) -> Iterator[Undeclared]:
    for address, table in sorted(live.tables.items()):
        if address not in live.resources and table.owner in ("", workspace.owner):
            yield Undeclared(address, "it is in the state store, but not in this stack's Pulumi state")
    for address, dataset in sorted(live.datasets.items()):  # datasets without an owner belong to clients of the catalog
        if dataset.owner == workspace.owner and dataset.dataset_id not in live.applied_datasets:
            yield Undeclared(address, "it is in the catalog, but not in this stack's Pulumi state")


def _plain_datasets(store: StateReader, root: str) -> Iterator[Undeclared]:
    if "://" not in root:
        locations = {entry.location for entry in store.instance().tables.values()}
        for path in plain_datasets(root):
            if location_under(root, path) not in locations:
                how = f"`deployer import table/DATABASE.NAME {shlex.quote(str(path))}`"
                yield Undeclared(path.name, f"a Lance dataset that is not a table: {how}")
