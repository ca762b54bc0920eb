"""Finding drift: Pulumi's state of the stack beside live state, in the planner's words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from deployer.cli.planning import engine_for, read_live
from deployer.cli.stack_owner import refuse_others_lake
from deployer.cli.stack_state import Applied, applied_resources
from deployer.cli.workspace import Workspace
from deployer.errors import NotFound
from deployer.live.drift import (
    Origin,
    column_origin,
    index_origin,
    instance_origin,
    property_origin,
    removal_origin,
    service_origin,
    with_renames,
)
from deployer.live.model import LiveLake
from deployer.live.reader import read_lake
from deployer.plan import changes as c
from deployer.plan.diff import diff
from deployer.plan.services import service_name
from deployer.provider.table_inputs import table_of
from deployer.specs.json_form import instance_from_json
from deployer.specs.model import Lake, TableSpec
from deployer.specs.root import resolve_root
from deployer.state import open_store
from deployer.state.store import StateStore
from deployer.tables.import_adopt import location_under, plain_datasets

#: The property of the state store that a change of a table is in.
_PROPERTIES: Mapping[type, str] = {
    c.SetOnline: "online",
    c.SetDeletionProtection: "deletion_protection",
    c.ChangeDescription: "description",
    c.ChangeTags: "tags",
    c.ChangeRowKeys: "row_keys",
    c.ChangeSortKeys: "sort_keys",
    c.ChangeStorage: "storage",
    c.ChangeSplitPoints: "declared",
    c.ChangeLeafLimit: "declared",
}


@dataclass(frozen=True, slots=True)
class DriftItem:
    """One difference: what turns the resource as it was applied into the live one, and where that came from."""

    address: str
    change: c.Change
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Something in the lake that nobody declared."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Differences by address, and what is there besides; `live` is what they were found in.

    `tables` are the live tables by the addresses that they were applied at, whatever they are called now; those that
    are gone are left out.
    """

    items: tuple[DriftItem, ...]
    undeclared: tuple[Undeclared, ...]
    lake: Lake
    live: LiveLake
    tables: Mapping[str, TableSpec]


def find_drift(workspace: Workspace) -> Drift:
    """What live state has otherwise than this stack last applied.

    Raises NotFound when it never applied anything, Refused when another stack manages the lake then.
    """
    lake = workspace.lake()
    applied = applied_resources(workspace, engine_for(workspace, lake))
    if not applied:
        refuse_others_lake(workspace, lake, read_live(workspace.root(lake)))
        raise NotFound(
            f"stack {workspace.stack} never applied anything", where=workspace.dir, remedy="run `deployer up` first"
        )
    root = _applied_root(workspace, lake, applied)
    try:
        with closing(open_store(root)) as store:
            live = read_lake(store, root)
            items = tuple(_items(store, root, applied, live))
            by_id = {table.table_id: table.spec for table in live.tables.values()}
            tables = {address: by_id[each.id] for address, each in applied.items() if each.id in by_id}
            return Drift(items, tuple(_undeclared(workspace, root, applied, live)), lake, live, tables)
    except NotFound:
        gone = (DriftItem(address, c.DeleteTable(address), None) for address in applied if address.startswith("table/"))
        return Drift(tuple(gone), (), lake, LiveLake(None), {})


def _applied_root(workspace: Workspace, lake: Lake, applied: Mapping[str, Applied]) -> str:
    """Where the lake was applied; the specs may have moved it since."""
    roots = (each.inputs.get("root") for address, each in applied.items() if address.startswith("instance/"))
    return resolve_root(workspace.dir, str(next(roots, None) or lake.instance.root))


def _items(store: StateStore, root: str, applied: Mapping[str, Applied], live: LiveLake) -> Iterator[DriftItem]:
    by_id = {table.table_id: table for table in live.tables.values()}
    entries = store.instance().tables
    for address, resource in sorted(applied.items()):
        if address.startswith("instance/"):
            for change in diff(instance_from_json(resource.inputs), live.instance):
                yield DriftItem(address, change, instance_origin(store))
            continue
        table = by_id.get(resource.id)
        applied_spec = table_of(resource.inputs)
        spec = table.spec if table else None
        if spec:
            columns = with_renames(root, entries[resource.id], applied_spec.columns, spec.columns)
            spec = replace(spec, columns=columns)
        for change in diff(applied_spec, spec):
            if table is None or isinstance(change, c.RenameTable):
                origin = removal_origin(store, resource.id)
            elif isinstance(change, c.ColumnChange):
                name = change.column[0] if change.column else ""
                origin = column_origin(store, root, entries[resource.id], name)
            elif isinstance(change, c.IndexChange):
                origin = index_origin(store, root, entries[resource.id], _index_name(change))
            elif isinstance(change, c.ServiceChange):
                origin = service_origin(store, resource.id, service_name(change).upper())
            else:
                origin = property_origin(store, resource.id, _PROPERTIES.get(type(change), ""))
            yield DriftItem(address, change, origin)


def _index_name(change: c.IndexChange) -> str:
    return change.after.name if isinstance(change, c.RebuildIndex) else change.index.name


def _undeclared(
    workspace: Workspace, root: str, applied: Mapping[str, Applied], live: LiveLake
) -> Iterator[Undeclared]:
    known = {resource.id for resource in applied.values()}
    for address, table in sorted(live.tables.items()):
        if table.table_id not in known and table.owner in ("", workspace.owner):
            yield Undeclared(address, "it is in the state store, and this stack's Pulumi state does not know it")
    if "://" not in root:
        locations = {table.location for table in live.tables.values()}
        for path in plain_datasets(root):
            if location_under(root, path) not in locations:
                why = (
                    f"a Lance dataset that is no table: `deployer import table/DATABASE.NAME {shlex.quote(str(path))}`"
                )
                yield Undeclared(path.name, why)
