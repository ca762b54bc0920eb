"""Makes the rows for rules from a plan and its lake."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from deployer.errors import Position
from deployer.live.column_age import Since
from deployer.live.model import LiveLake, Unreadable
from deployer.plan import changes as c
from deployer.plan.graph.build import Spec
from deployer.plan.model import Plan, PlannedChange, ResourcePlan
from deployer.plan.render.changes import describe, dotted
from deployer.plan.render.json_form import value_as_json
from deployer.plan.targeting.outside_targets import begins_to_send
from deployer.policy.rows import ChangeRow, ColumnRow, PlanView, ResourceRow
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.types.computed import Computed, describe_computed
from deployer.specs.types.dataset import DatasetSpec
from deployer.specs.types.types import Column, ColumnType, children, format_type

#: a function from a table's live address and a column to the time since which the table has the column; None where the
#: time is unknown
ColumnSince = Callable[[str, c.ColumnPath], Since | None]

_NO_TAGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Names:
    """The resources and columns that the plan creates or renames. A column is the address of its table and a path.
    Fields of columns in `added` are new too."""

    resources: frozenset[str]
    added: frozenset[tuple[str, c.ColumnPath]]
    renamed: frozenset[tuple[str, c.ColumnPath]]

    def has_column(self, address: str, path: c.ColumnPath) -> bool:
        above = ((address, path[:length]) for length in range(len(path) + 1))
        return (address, path) in self.renamed or any(each in self.added for each in above)


def plan_view(
    plan: Plan, declared: Sequence[Spec], live: LiveLake, stack: str, now: dt.datetime, since: ColumnSince | None
) -> PlanView:
    """Returns the rows of a plan. `declared` are the specs of the lake after the plan, and `live` is the lake before
    the plan. `since` is None where no live state exists."""
    specs = {spec.address: spec for spec in declared}
    names = _new_names(plan, live)
    planned = {resource.address: resource for resource in plan.resources}
    return PlanView(
        stack,
        plan.instance,
        tuple(
            _change_row(resource, change, specs.get(resource.address), live, since)
            for resource in plan.resources
            for change in resource.changes
        ),
        tuple(_resource_row(spec, planned.get(spec.address), names, live) for spec in declared),
        tuple(row for spec in declared if isinstance(spec, TableSpec) for row in _column_rows(spec, names)),
        now,
        since is not None,
        MappingProxyType({table.address: table.what for table in plan.unreadable}),
    )


def _new_names(plan: Plan, live: LiveLake) -> _Names:
    resources: set[str] = set()
    added: set[tuple[str, c.ColumnPath]] = set()
    renamed: set[tuple[str, c.ColumnPath]] = set()
    for each in plan.changes:
        match each.change:
            case c.CreateTable(address=address):
                resources.add(address)
                added.add((address, ()))
            case c.RenameTable(address=address) if address in live.applied:
                pass  # the table gets its former name back
            case c.CreateInstance(address=address) | c.CreateDataset(address=address) | c.RenameTable(address=address):
                resources.add(address)
            case c.AddColumn(address=address, column=path):
                added.add((address, path))
            case c.RenameColumn(address=address, column=path, after=name):
                renamed.add((address, (*path[:-1], name)))
            case _:
                pass
    return _Names(frozenset(resources), frozenset(added), frozenset(renamed))


def _change_row(
    resource: ResourcePlan, planned: PlannedChange, spec: Spec | None, live: LiveLake, since: ColumnSince | None
) -> ChangeRow:
    change, assessment = planned.change, planned.assessment
    catalogs = begins_to_send(change)
    sides = _sides(change)
    before = live.tables.get(resource.live_address)
    table = spec if isinstance(spec, TableSpec) else before.spec if before else None
    added = since(before.spec.address, change.column) if since and before and isinstance(change, c.DropColumn) else None
    dataset = live.datasets.get(resource.live_address)
    shown = (
        spec
        or table
        or (dataset.spec if dataset else None)
        or (live.instance if resource.address.startswith("instance/") else None)
    )
    return ChangeRow(
        address=resource.address,
        kind=resource.address.partition("/")[0],
        database=table.database if table else "",
        name=shown.name if shown else resource.address.partition("/")[2],
        action=resource.action,
        change=change.kind,
        risk=assessment.risk.value,
        summary=describe(change),
        column=dotted(getattr(change, "column", ())),
        before=sides[0],
        after=sides[1],
        rows=assessment.rows,
        bytes=assessment.bytes,
        sizes_known=resource.statistics.known,
        added_at=added.at if added else None,
        added_at_is_bound=added.at_least if added else False,
        refused=planned.refused,
        sends_to=tuple(dict.fromkeys(each.name for each in catalogs)),
        token_variables=tuple(dict.fromkeys(each.token for each in catalogs if each.token)),
        tags=_kept(shown.tags) if shown and not isinstance(shown, DatasetSpec) else _NO_TAGS,
        at=planned.cause,
    )


def _kept(tags: Mapping[str, str]) -> Mapping[str, str]:
    """Returns a read-only copy of the tags, so that a rule cannot change them for later rules."""
    return MappingProxyType(dict(tags))


def _sides(change: c.Change) -> tuple[str | None, str | None]:
    """Returns the values before and after the change, each as one text. None stands for a missing value."""
    match change:
        case c.AddColumn(definition=column):
            return None, format_type(column.type)
        case c.RenameColumn(column=path, after=name):
            return path[-1], name
        case c.RelaxNullability():
            return "not null", "null"
        case c.TightenNullability():
            return "null", "not null"
        case c.SetOnline(online=online):
            return _flag(not online), _flag(online)
        case c.SetDeletionProtection(protected=protected):
            return _flag(not protected), _flag(protected)
        case c.CreateIndex(index=index):
            return None, index.kind
        case c.DropIndex(index=index):
            return index.kind, None
        case c.CreateService(service=service):
            return None, service.kind
        case c.DeleteService(service=service):
            return service.kind, None
        case _:
            return _text(getattr(change, "before", None)), _text(getattr(change, "after", None))


def _flag(value: bool) -> str:
    return str(value).lower()


def _text(value: object) -> str | None:
    match value:
        case None | str():
            return value
        case tuple() if all(isinstance(item, str) for item in value):
            return ", ".join(value)
        case _ if isinstance(value, ColumnType):
            return format_type(value)
        case _ if isinstance(value, Computed):
            return describe_computed(value)
        case _:
            return json.dumps(value_as_json(value), ensure_ascii=False, sort_keys=True)


def _resource_row(spec: Spec, planned: ResourcePlan | None, names: _Names, live: LiveLake) -> ResourceRow:
    unreadable = isinstance(spec, TableSpec) and isinstance(live.of(spec), Unreadable)
    action = "unreadable" if unreadable else planned.action if planned else "same"
    is_new, at = spec.address in names.resources, spec.sources.get("")
    if isinstance(spec, InstanceSpec):
        return ResourceRow(
            spec.address,
            "instance",
            "",
            spec.name,
            spec.description,
            _kept(spec.tags),
            action=action,
            is_new=is_new,
            at=at,
        )
    if isinstance(spec, DatasetSpec):
        return ResourceRow(
            spec.address,
            "dataset",
            "",
            spec.name,
            spec.description,
            indexes=tuple(index.column for index in spec.search_indexes),
            deletion_protection=spec.deletion_protection,
            action=action,
            is_new=is_new,
            at=at,
        )
    return ResourceRow(
        address=spec.address,
        kind="table",
        database=spec.database,
        name=spec.name,
        description=spec.description,
        tags=_kept(spec.tags),
        row_keys=spec.row_keys,
        sort_keys=spec.sort_keys,
        indexes=tuple(index.name for index in spec.indexes),
        leaves=len(spec.split_points) + 1,
        online=spec.online,
        deletion_protection=spec.deletion_protection,
        action=action,
        is_new=is_new,
        rows=planned.statistics.rows if planned else 0,
        bytes=planned.statistics.bytes if planned else 0,
        at=at,
    )


def _column_rows(spec: TableSpec, names: _Names) -> Iterator[ColumnRow]:
    for path, column in _fields(spec.columns, ()):
        yield ColumnRow(
            address=spec.address,
            database=spec.database,
            table=spec.name,
            column=dotted(path),
            type=format_type(column.type),
            nullable=column.nullable,
            description=column.description,
            default=column.default,
            is_row_key=len(path) == 1 and column.name in spec.row_keys,
            is_sort_key=len(path) == 1 and column.name in spec.sort_keys,
            is_new=names.has_column(spec.address, path),
            tags=_kept(spec.tags),
            at=_place(spec.sources, path),
        )


def _fields(columns: Sequence[Column], parent: c.ColumnPath) -> Iterator[tuple[c.ColumnPath, Column]]:
    for column in columns:
        path = (*parent, column.name)
        yield path, column
        yield from _fields(children(column.type), path)


def _place(sources: Mapping[str, Position], path: c.ColumnPath) -> Position | None:
    """Returns the place of the column, or else of the nearest column around it, or else of the table."""
    keys = ["columns." + dotted(path[:length]) for length in range(len(path), 0, -1)]
    return next((sources[key] for key in (*keys, "") if key in sources), None)
