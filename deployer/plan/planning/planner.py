"""Makes a plan: every change with its risk, its cause, and the reason if it is refused. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.live.model import LiveLake, LiveTable, TableStatistics, Unreadable
from deployer.plan.assess.holds import hold_refusal
from deployer.plan.assess.pending_backfills import PendingBackfill, pending_backfills
from deployer.plan.assess.risk import Risk, assess, with_expected_time
from deployer.plan.assess.savepoints import savepoint_loss, savepoint_refusal
from deployer.plan.assess.unsupported import kept_keys, refusal
from deployer.plan.changes import ChangeColumnComputed, DeleteTable
from deployer.plan.diff.lakes import diff
from deployer.plan.graph import Graph
from deployer.plan.graph.build import Spec, in_dependency_order
from deployer.plan.model import Foreign, Plan, PlannedChange, ResourcePlan
from deployer.plan.planning.cause import cause
from deployer.plan.planning.datasets import action_of, plan_datasets
from deployer.plan.planning.taken_names import refuse_taken_names
from deployer.plan.planning.view_sources import refuse_losses_of_views
from deployer.specs.model import IndexSpec, InstanceSpec, TableSpec
from deployer.specs.types.dataset import DatasetSpec
from deployer.specs.types.types import Column

if TYPE_CHECKING:
    pass


def make_plan(
    instance: str,
    graph: Graph,
    live: LiveLake,
    *,
    owner: str,
    allow_destroy: Collection[str] = (),
    delete_savepoints: bool = False,
    foreign: Iterable[Foreign] = (),
) -> Plan:
    """Returns the plan that turns `live` into `graph`; an empty graph plans the deletion of everything that `owner`
    manages.

    Nothing is planned for tables that cannot be read. `owner` is the `project/stack` whose tables are deleted when the
    specs no longer declare them. Tables in Pulumi's state of the stack are deleted too; other tables are not changed.
    `allow_destroy` has the addresses whose data may be destroyed; `delete_savepoints`: tables may be deleted with their
    savepoints. A resource has its declared address, otherwise the address in Pulumi's state.
    """
    resources = []
    declared = set()
    pending: list[PendingBackfill] = []
    for node in graph.nodes.values():
        if isinstance(node.spec, DatasetSpec):
            continue
        table = live.of(node.spec) if isinstance(node.spec, TableSpec) else None
        if isinstance(table, Unreadable):
            continue
        if table is not None:
            declared.add(table.spec.address)
        before = table.spec if table else live.instance if isinstance(node.spec, InstanceSpec) else None
        resources.append(_plan_resource(node.address, before, node.spec, table, allow_destroy, read=live.read))
        if table is not None and table.uncomputed and isinstance(node.spec, TableSpec):
            changes = [each.change for each in resources[-1].changes]
            pending += pending_backfills(node.address, table, node.spec, changes)
    for now, table in _deletion_order(live):
        if now not in declared and (table.owner == owner or now in live.resources):
            address = live.resources.get(now, now)
            deleted = _plan_resource(address, table.spec, None, table, allow_destroy)
            resources.append(_with_savepoints(deleted, table.savepoints, allowed=delete_savepoints))
    resources = refuse_taken_names(resources, graph, live)
    resources = refuse_losses_of_views(resources, graph, live)
    resources += plan_datasets(graph, live, owner=owner, allow_destroy=allow_destroy)
    if live.instance is not None and not graph.nodes:
        resources.append(_plan_resource(live.instance.address, live.instance, None, None, allow_destroy))
    unreadable = tuple(table for _, table in sorted(live.unreadable.items()))
    return Plan(instance, tuple(resources), tuple(foreign), unreadable=unreadable, pending_backfills=tuple(pending))


def _deletion_order(live: LiveLake) -> list[tuple[str, LiveTable]]:
    """Returns the live tables by their addresses: views first, each before its sources, then the others by name."""
    views = [table.spec for _, table in sorted(live.tables.items()) if table.spec.view is not None]
    last = {spec.address: number for number, spec in enumerate(reversed(in_dependency_order(views)))}
    return sorted(live.tables.items(), key=lambda each: (last.get(each[1].spec.address, len(last)), each[0]))


def _plan_resource(
    address: str,
    before: Spec | None,
    after: Spec | None,
    table: LiveTable | None,
    allow_destroy: Collection[str],
    *,
    read: bool = False,
) -> ResourcePlan:
    statistics = table.statistics if table else TableStatistics()
    now = table.spec.address if table else ""
    planned = []
    keys = kept_keys(before, after)
    has_rows = not statistics.known or statistics.rows > 0
    for change in diff(before, after, read=read):
        if isinstance(change, DeleteTable) and table is not None and now != address:
            change = DeleteTable(address, table.spec.full_name)
        assessment = assess(change, statistics, keys, _columns(before), _columns(after), _indexes(before))
        if isinstance(change, ChangeColumnComputed) and table is not None:
            assessment = with_expected_time(assessment, table.rates.get(change.column[0]))
        refused = refusal(change, keys, has_rows=has_rows)
        if refused is None and isinstance(before, TableSpec):
            refused = hold_refusal(change, before.holds, has_rows=has_rows)
        if refused is None and assessment.risk is Risk.DESTROYS and not {address, now} & {*allow_destroy}:
            refused = f"destroys data; to allow it: --allow-destroy {address}"
        planned.append(PlannedChange(change, assessment, cause(change, after), refused))
    table_id = table.table_id if table else ""
    return ResourcePlan(address, action_of(before, after, planned), tuple(planned), statistics, now, table_id)


def _with_savepoints(deleted: ResourcePlan, names: tuple[str, ...], *, allowed: bool) -> ResourcePlan:
    """Returns the deletion of a table with these savepoints. It loses their rows, and is refused unless the savepoints
    may be deleted."""
    if not names:
        return deleted
    refusal = savepoint_refusal(names, allowed=allowed)
    changes = tuple(
        replace(
            each,
            assessment=replace(
                each.assessment, risk=Risk.DESTROYS, why=f"{each.assessment.why}; {savepoint_loss(names)}"
            ),
            refused="; ".join(filter(None, (each.refused, refusal))) or None,
        )
        for each in deleted.changes
    )
    return replace(deleted, changes=changes, savepoints=names)


def _columns(spec: Spec | None) -> tuple[Column, ...]:
    return spec.columns if isinstance(spec, TableSpec) else ()


def _indexes(spec: Spec | None) -> tuple[IndexSpec, ...]:
    return spec.indexes if isinstance(spec, TableSpec) else ()
