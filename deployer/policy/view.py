"""The rows that rules see, made from a plan and the lake that it was made for."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployer.errors import Position
from deployer.graph.build import Spec
from deployer.live.column_age import Since
from deployer.live.model import LiveLake, LiveTable
from deployer.plan import changes as c
from deployer.plan.as_json import value_as_json
from deployer.plan.plan import Plan, PlannedChange, ResourcePlan
from deployer.plan.words import describe, dotted
from deployer.policy.rows import ChangeRow, ColumnRow, PlanView, ResourceRow
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.types import Column, ColumnType, children, format_type

#: Since when a table has a column, by the table's address as it is live; None when nobody knows.
ColumnSince = Callable[[str, c.ColumnPath], Since | None]


@dataclass(frozen=True, slots=True)
class _Names:
    """What the plan creates or gives its name: addresses, and paths of columns by address."""

    resources: frozenset[str]
    columns: frozenset[tuple[str, c.ColumnPath]]


def plan_view(
    plan: Plan, declared: Sequence[Spec], live: LiveLake, stack: str, now: dt.datetime, since: ColumnSince | None
) -> PlanView:
    """`declared` is what the plan turns `live` into; `since` is None where there is no live state to ask."""
    specs = {spec.address: spec for spec in declared}
    names = _new_names(plan)
    planned = {resource.address: resource for resource in plan.resources}
    return PlanView(
        stack,
        plan.instance,
        tuple(
            _change_row(resource, change, specs.get(resource.address), live, since)
            for resource in plan.resources
            for change in resource.changes
        ),
        tuple(_resource_row(spec, planned.get(spec.address), names) for spec in declared),
        tuple(row for spec in declared if isinstance(spec, TableSpec) for row in _column_rows(spec, names)),
        now,
        since is not None,
    )


def _new_names(plan: Plan) -> _Names:
    resources, columns = set(), set()
    for each in plan.changes:
        match each.change:
            case c.CreateTable(address=address) | c.CreateInstance(address=address) | c.RenameTable(address=address):
                resources.add(address)
            case c.AddColumn(address=address, column=path):
                columns.add((address, path))
            case c.RenameColumn(address=address, column=path, after=name):
                columns.add((address, (*path[:-1], name)))
            case _:
                pass
    created = {each.change.address for each in plan.changes if isinstance(each.change, c.CreateTable)}
    return _Names(frozenset(resources), frozenset(columns | {(address, ()) for address in created}))


def _change_row(
    resource: ResourcePlan, planned: PlannedChange, spec: Spec | None, live: LiveLake, since: ColumnSince | None
) -> ChangeRow:
    change, assessment = planned.change, planned.assessment
    before = _live_table(resource.address, spec, live)
    table = spec if isinstance(spec, TableSpec) else before.spec if before else None
    added = since(before.spec.address, change.column) if since and before and isinstance(change, c.DropColumn) else None
    shown = spec or table or (live.instance if resource.address.startswith("instance/") else None)
    return ChangeRow(
        address=resource.address,
        kind=resource.address.partition("/")[0],
        database=table.database if table else "",
        name=shown.name if shown else resource.address.partition("/")[2],
        action=resource.action,
        change=type(change).__name__,
        risk=assessment.risk.value,
        summary=describe(change),
        column=dotted(getattr(change, "column", ())),
        before=_text(change, "before"),
        after=_text(change, "after"),
        rows=assessment.rows,
        bytes=assessment.bytes,
        sizes_known=resource.statistics.known,
        added_at=added.at if added else None,
        added_at_is_bound=added.at_least if added else False,
        refused=planned.refused,
        tags=dict(shown.tags) if shown else {},
        at=planned.cause,
    )


def _live_table(address: str, spec: Spec | None, live: LiveLake) -> LiveTable | None:
    """The live table that the resource is, found by its name or by the name that it had."""
    former = f"table/{spec.former_name}" if isinstance(spec, TableSpec) and spec.former_name else ""
    return live.tables.get(address) or live.tables.get(former)


def _text(change: c.Change, name: str) -> str | None:
    """A change's `before` or `after` as one text; None for a change that has none."""
    value = getattr(change, name, None)
    match value:
        case None | str():
            return value
        case tuple() if all(isinstance(item, str) for item in value):
            return ", ".join(value)
        case _ if isinstance(value, ColumnType):
            return format_type(value)
        case _:
            return json.dumps(value_as_json(value), ensure_ascii=False, sort_keys=True)


def _resource_row(spec: Spec, planned: ResourcePlan | None, names: _Names) -> ResourceRow:
    action = planned.action if planned else "same"
    is_new, at = spec.address in names.resources, spec.sources.get("")
    if isinstance(spec, InstanceSpec):
        return ResourceRow(
            spec.address,
            "instance",
            "",
            spec.name,
            spec.description,
            dict(spec.tags),
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
        tags=dict(spec.tags),
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
            is_new=any((spec.address, path[:length]) in names.columns for length in range(len(path) + 1)),
            tags=dict(spec.tags),
            at=_place(spec.sources, path),
        )


def _fields(columns: Sequence[Column], parent: c.ColumnPath) -> Iterator[tuple[c.ColumnPath, Column]]:
    for column in columns:
        path = (*parent, column.name)
        yield path, column
        yield from _fields(children(column.type), path)


def _place(sources: Mapping[str, Position], path: c.ColumnPath) -> Position | None:
    """The column's own place, else that of the column that it is in, else the table's."""
    keys = ["columns." + dotted(path[:length]) for length in range(len(path), 0, -1)]
    return next((sources[key] for key in (*keys, "") if key in sources), None)
