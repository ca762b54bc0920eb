"""The places where the long work of a plan runs: rewrites of whole tables, and builds of indexes of large tables.
Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from deployer.plan.assess.risk import Risk
from deployer.plan.changes import Change, CreateIndex, RebuildIndex, TableAlteration
from deployer.plan.model import Plan, PlannedChange, ResourcePlan
from deployer.plan.stages import RewriteTable, stages
from deployer.specs.model import Lake, TableSpec

SMALL_ROWS = 20_000_000  #: up to this size, the process of `up` builds an index faster than a cluster starts


def rewrites_tables(plan: Plan, lake: Lake) -> bool:
    """Returns whether a change of the plan for `lake` rewrites a table that has rows."""
    tables = {table.address: table for table in lake.tables}
    return any(_rewrite(each, tables.get(each.address)) for each in plan.resources)


def builds_large_indexes(plan: Plan) -> bool:
    """Returns whether a change of the plan builds an index of a large table."""
    return any(_builds(each) for each in plan.resources)


def with_place(plan: Plan, lake: Lake, place: str) -> Plan:
    """Returns the plan with `place` (`on cluster nightly (emr)`) in each change that rewrites a whole table or builds
    an index of a large one."""
    tables = {table.address: table for table in lake.tables}
    return replace(
        plan,
        resources=tuple(
            _placed(each, (*_rewrite(each, tables.get(each.address)), *_builds(each)), place) for each in plan.resources
        ),
    )


def with_build_place(plan: Plan, place: str) -> Plan:
    """Returns the plan with `place` in each change that builds an index of a large table."""
    return replace(plan, resources=tuple(_placed(each, _builds(each), place) for each in plan.resources))


def _placed(resource: ResourcePlan, work: Collection[Change], place: str) -> ResourcePlan:
    def placed(each: PlannedChange) -> PlannedChange:
        if each.change not in work:
            return each
        return replace(each, assessment=replace(each.assessment, why=f"{each.assessment.why}, {place}"))

    return replace(resource, changes=tuple(map(placed, resource.changes))) if work else resource


def _rewrite(resource: ResourcePlan, table: TableSpec | None) -> tuple[Change, ...]:
    """Returns the changes that one rewrite of the table makes, without those that touch no rows."""
    if table is None:
        return ()
    risky = [each.change for each in resource.changes if each.assessment.risk is Risk.REWRITES]
    changes = [each.change for each in resource.changes if isinstance(each.change, TableAlteration)]
    found = (stage.changes for stage in stages(changes, table) if isinstance(stage, RewriteTable))
    return tuple(change for rewritten in found for change in rewritten if change in risky)


def _builds(resource: ResourcePlan) -> tuple[Change, ...]:
    """Returns the changes that build an index of the table, where that is large."""
    if resource.statistics.rows <= SMALL_ROWS:
        return ()
    return tuple(each.change for each in resource.changes if isinstance(each.change, CreateIndex | RebuildIndex))
