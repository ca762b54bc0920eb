"""Where a plan's changes that rewrite a whole table are made. Pure."""

from __future__ import annotations

from dataclasses import replace

from deployer.plan.assess.risk import Risk
from deployer.plan.changes import Change, ChangeRowKeys, ChangeSortKeys, ChangeSplitPoints, ChangeStorage, WidenColumn
from deployer.plan.model import Plan, PlannedChange
from deployer.specs.model import Lake, TableSpec


def rewrites_tables(plan: Plan, lake: Lake) -> bool:
    """Whether a change of the plan for `lake` rewrites a table that has rows."""
    return any(map(_is_rewrite, _changes(plan, lake)))


def with_place(plan: Plan, lake: Lake, place: str) -> Plan:
    """The plan, which says `place` (`on cluster nightly (emr)`) of each change that rewrites a whole table."""
    tables = {table.address: table for table in lake.tables}

    def placed(each: PlannedChange, table: TableSpec | None) -> PlannedChange:
        if not _is_rewrite((each, table)):
            return each
        why = f"{each.assessment.why}, {place}"
        return replace(each, assessment=replace(each.assessment, why=why))

    resources = (
        replace(each, changes=tuple(placed(change, tables.get(each.address)) for change in each.changes))
        for each in plan.resources
    )
    return replace(plan, resources=tuple(resources))


def _changes(plan: Plan, lake: Lake) -> list[tuple[PlannedChange, TableSpec | None]]:
    tables = {table.address: table for table in lake.tables}
    return [(change, tables.get(each.address)) for each in plan.resources for change in each.changes]


def _is_rewrite(of: tuple[PlannedChange, TableSpec | None]) -> bool:
    planned, table = of
    return planned.assessment.risk is Risk.REWRITES and table is not None and _of_table(planned.change, table)


def _of_table(change: Change, table: TableSpec) -> bool:
    match change:
        case ChangeRowKeys() | ChangeSortKeys() | ChangeSplitPoints() | ChangeStorage():
            return True
        case WidenColumn(column=(name,)):
            return name in table.row_keys
        case _:
            return False
