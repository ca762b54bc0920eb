"""Checks of a plan's changes and removals against the data of its tables."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from deployer.app.planning.expiring import with_expiring
from deployer.app.workspace import Workspace
from deployer.errors import Corrupt, NotFound
from deployer.live.model import LiveLake, Unreadable
from deployer.plan import Plan, ResourcePlan
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.specs.model import Lake


def looked_up(
    plan: Plan, lake: Lake, live: LiveLake, root: str, on_progress: OnProgress = no_progress
) -> tuple[Plan, LiveLake]:
    """Returns the plan with the changes checked on the rows of the tables. Tables whose rows cannot be read become
    unreadable, in the plan and in the live state.

    Raises InvalidInput for a new default that exceeds the limits of a plan.
    """
    if plan.changes:
        from deployer.tables.evolution.schema.default_trial import refuse_defaults_over_limits

        refuse_defaults_over_limits(lake, live)
    tables = {table.table_id: table for table in live.tables.values()}
    found: list[ResourcePlan] = []
    lost: list[Unreadable] = []
    report = on_progress if plan.changes else no_progress
    for resource in counted(plan.resources, len(plan.resources), "checking the changes", "resources", report):
        table = tables.get(resource.table_id) if resource.changes and resource.table_id else None
        if table is None:
            found.append(resource)
            continue
        from deployer.datasets.errors import lance_errors
        from deployer.tables.evolution.schema.check import checked_on_data  # it loads Arrow's functions
        from deployer.tables.evolution.schema.column_sizes import sized_on_disk

        try:
            with lance_errors(f"{root.rstrip('/')}/{table.location}"):
                alone = replace(plan, resources=(resource,))
                found += sized_on_disk(checked_on_data(alone, live, root), live, root).resources
        except (Corrupt, NotFound) as error:
            where = f"{error.where}: {error.what}"
            lost.append(Unreadable(table.spec.address, table.table_id, where, error.remedy))
    plan = replace(plan, resources=tuple(found), unreadable=(*plan.unreadable, *lost))
    for each in lost:
        live = live.without(each)
    return with_expiring(plan, lake, live, root), live


def with_removals(
    workspace: Workspace, lake: Lake, plan: Plan, live: LiveLake, root: str, allow_destroy: Collection[str]
) -> Plan:
    """Returns the plan with the old datasets, and the remains of interrupted deletions, that the run removes."""
    if not live.unfinished and not any(table.former for table in live.tables.values()):
        return plan
    from deployer.tables.maintenance.collect.foreseen_removals import foreseen_removals  # it loads Arrow

    now = time.time_ns() // 1_000_000
    found = foreseen_removals(
        plan, live, root, desired=lake, owner=workspace.owner, allow_destroy=allow_destroy, now=now
    )
    return replace(plan, removals=found)
