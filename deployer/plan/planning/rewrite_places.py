"""Where a plan's changes that rewrite a whole table are made. Pure."""

from __future__ import annotations

from dataclasses import replace

from deployer.plan.assess.risk import Risk
from deployer.plan.changes import RewriteChange, TableAlteration
from deployer.plan.model import Plan, PlannedChange, ResourcePlan
from deployer.plan.stages import RewriteTable, stages
from deployer.specs.model import Lake, TableSpec


def rewrites_tables(plan: Plan, lake: Lake) -> bool:
    """Returns whether a change of the plan for `lake` rewrites a table that has rows."""
    tables = {table.address: table for table in lake.tables}
    return any(_rewrite(each, tables.get(each.address)) for each in plan.resources)


def with_place(plan: Plan, lake: Lake, place: str) -> Plan:
    """Returns the plan, which says `place` (`on cluster nightly (emr)`) of each change that rewrites a whole table."""
    tables = {table.address: table for table in lake.tables}
    return replace(
        plan, resources=tuple(_placed(each, _rewrite(each, tables.get(each.address)), place) for each in plan.resources)
    )


def _placed(resource: ResourcePlan, rewrite: tuple[RewriteChange, ...], place: str) -> ResourcePlan:
    def placed(each: PlannedChange) -> PlannedChange:
        if each.change not in rewrite:
            return each
        return replace(each, assessment=replace(each.assessment, why=f"{each.assessment.why}, {place}"))

    return replace(resource, changes=tuple(map(placed, resource.changes))) if rewrite else resource


def _rewrite(resource: ResourcePlan, table: TableSpec | None) -> tuple[RewriteChange, ...]:
    """Returns the changes that one rewrite of the table makes, without those that touch no rows."""
    if table is None:
        return ()
    risky = [each.change for each in resource.changes if each.assessment.risk is Risk.REWRITES]
    changes = [each.change for each in resource.changes if isinstance(each.change, TableAlteration)]
    found = (stage.changes for stage in stages(changes, table) if isinstance(stage, RewriteTable))
    return tuple(change for rewritten in found for change in rewritten if change in risky)
