"""The line of a spec file that caused a change."""

from __future__ import annotations

from typing import assert_never

from deployer.errors import Position
from deployer.plan import changes as c
from deployer.plan.graph.build import Spec
from deployer.specs.model import TableSpec

_PROPERTY: dict[type, str] = {
    c.ChangeRoot: "root",
    c.ChangeStateBackend: "state",
    c.ChangeEngine: "engine",
    c.ChangeClusters: "clusters",
    c.ChangeNotify: "notify",
    c.ChangeRowKeys: "row_keys",
    c.SetUnique: "unique",
    c.ChangeSortKeys: "sort_keys",
    c.ChangeSplitPoints: "partitions",
    c.ChangeLeafLimit: "partitions",
    c.ChangeRetention: "retention",
    c.ChangeHolds: "holds",
    c.ChangeRetainedChanges: "retain_changes",
    c.ChangeStorage: "storage",
    c.ChangeEmbedding: "embedding",
    c.ChangeViewQuery: "query",
    c.ChangeMaxStaleness: "max_staleness",
    c.ChangeSources: "sources",
    c.ChangeRegister: "register",
    c.ChangeDefaultBlueprint: "default_blueprint",
    c.ChangeVersionsKept: "retention",
    c.ChangeDatasetServices: "services",
    c.DropSearchIndex: "search_indexes",
    c.SetOnline: "online",
    c.SetDeletionProtection: "deletion_protection",
    c.ChangeDescription: "description",
    c.ChangeTags: "tags",
}
_COLUMN_PROPERTY: dict[type, str] = {
    c.WidenColumn: "type",
    c.ConvertColumn: "type",
    c.RelaxNullability: "nullable",
    c.TightenNullability: "nullable",
    c.ChangeColumnDescription: "description",
    c.ChangeColumnSensitive: "sensitive",
    c.ChangeColumnDefault: "default",
    c.ChangeColumnSource: "source",
    c.ChangeColumnComputed: "computed",
    c.RenameColumn: "renamed_from",
}


def cause(change: c.Change, desired: Spec | None) -> Position | None:
    """Returns the most exact position that the specs have for `change`; None when the specs no longer declare the
    resource."""
    if desired is None:
        return None
    if isinstance(change, c.ColumnChange):
        path = change.column
        if isinstance(change, c.RenameColumn):
            path = (*path[:-1], change.after)
        columns = "columns." + ".".join(path) if path else "columns"
        candidates = [f"{columns}.{_COLUMN_PROPERTY[type(change)]}"] if type(change) in _COLUMN_PROPERTY else []
        candidates += [columns, f"columns.{path[0]}" if path else "columns", "columns"]
    elif isinstance(change, c.IndexChange):
        candidates = _index_places(change)
    elif isinstance(change, c.ServiceChange):
        candidates = [*_service_places(change), "services"]
    elif isinstance(change, c.CreateSearchIndex | c.RebuildSearchIndex):
        column = change.index.column if isinstance(change, c.CreateSearchIndex) else change.after.column
        candidates = [f"search_indexes.{column}", "search_indexes"]
    elif isinstance(change, c.RenameTable):
        declared = isinstance(desired, TableSpec) and desired.former_name == change.before
        candidates = ["renamed_from" if declared else "name"]  # the live name does not come from the specs
    else:
        candidates = [_PROPERTY.get(type(change), "")]
    found = (desired.sources[key] for key in (*candidates, "") if key in desired.sources)
    return next(found, None)


def _index_places(change: c.IndexChange) -> list[str]:
    """Returns the position of the changed parameter, otherwise of the index, otherwise of the list of indexes."""
    match change:
        case c.CreateIndex(index=index):
            return [f"indexes.{index.name}", "indexes"]
        case c.DropIndex():
            return ["indexes"]
        case c.RenameIndex(after=index):
            return [f"indexes.{index.name}.name", f"indexes.{index.name}", "indexes"]
        case c.RebuildIndex(before=before, after=after):
            changed = [name for name in ("kind", "columns") if getattr(before, name) != getattr(after, name)]
            changed += [name for name, value in after.parameters.items() if before.parameters.get(name) != value]
            return [*(f"indexes.{after.name}.{name}" for name in changed), f"indexes.{after.name}", "indexes"]
        case _:
            assert_never(change)


def _service_places(change: c.ServiceChange) -> list[str]:
    """Returns the position of the changed property, otherwise of the service; for a removed service, that of the list
    of services."""
    match change:
        case c.CreateService(service=service):
            return [f"services.{service.name}"]
        case c.DeleteService():
            return []
        case c.ChangeTrigger(service=kind):
            name, parts = kind.lower(), ["trigger", "trigger_mode"]
        case c.ChangeServiceOptions(service=kind, before=before, after=after):
            changed = [f"options.{each}" for each, value in after.items() if before.get(each) != value]
            name, parts = kind.lower(), [*changed, "options"]
        case c.MoveServiceToCluster(service=kind):
            name, parts = kind.lower(), ["cluster"]
        case _:
            assert_never(change)
    return [*(f"services.{name}.{part}" for part in parts), f"services.{name}"]
