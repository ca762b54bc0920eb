"""A plan: every change with its risk, its cause and whether it may be applied. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from deployer.errors import Position
from deployer.graph import Graph
from deployer.graph.build import Spec
from deployer.live.model import LiveLake, LiveTable, TableStatistics, Unreadable
from deployer.plan.cause import cause
from deployer.plan.changes import Change, DeleteTable
from deployer.plan.diff import diff
from deployer.plan.removals import Removal
from deployer.plan.risk import Assessment, Risk, assess
from deployer.plan.savepoints import savepoint_loss, savepoint_refusal
from deployer.plan.support import kept_keys, refusal
from deployer.plan.taken_names import refuse_taken_names
from deployer.plan.targets import Targets
from deployer.specs.model import IndexSpec, InstanceSpec, TableSpec
from deployer.specs.types import Column

if TYPE_CHECKING:
    from deployer.plan.monthly import MonthlyCost
    from deployer.plan.verdict import Verdict, Violation

Action = Literal["create", "update", "delete", "same"]

#: The sign of each action, as Terraform and Pulumi show them.
GLYPHS: Mapping[Action, str] = {"create": "+", "update": "~", "delete": "-", "same": " "}

#: Operations on resources of other providers after which what was there is gone.
_TAKING_AWAY = ("delete", "replace", "delete-replaced")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One change; `refused` says why `up` will not apply it, None when it will."""

    change: Change
    assessment: Assessment
    cause: Position | None
    refused: str | None


@dataclass(frozen=True, slots=True)
class ResourcePlan:
    """What happens to one resource; no changes means `same`."""

    address: str
    action: Action
    changes: tuple[PlannedChange, ...]
    statistics: TableStatistics = TableStatistics()
    live_address: str = ""  #: of the live table, which may have another name now; empty where there is none
    table_id: str = ""  #: of the live table too
    savepoints: tuple[str, ...] = ()  #: of a table that is deleted, the newest first: they go with it


@dataclass(frozen=True, slots=True)
class Foreign:
    """An operation that is no change of the lake, as the engine reports it: on a resource of another provider, or what
    only Pulumi's state needs."""

    address: str
    action: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Resources in the order of the graph, deletions last.

    `unreadable` are tables of the lake that cannot be read: nothing is planned for them, and `up` leaves them as they
    are, declared or not. `verdict` is None where the project has no policies, `cost` where nothing is paid for or
    changed. `removals` are data that goes beside what the changes say. `targets` is None where the plan is of the whole
    lake; else it has nothing of other resources than those.
    """

    instance: str
    resources: tuple[ResourcePlan, ...]
    foreign: tuple[Foreign, ...] = ()
    verdict: Verdict | None = None
    cost: MonthlyCost | None = None
    removals: tuple[Removal, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    targets: Targets | None = None

    @property
    def changes(self) -> tuple[PlannedChange, ...]:
        return tuple(change for resource in self.resources for change in resource.changes)

    @property
    def refused(self) -> tuple[PlannedChange, ...]:
        return tuple(change for change in self.changes if change.refused)

    @property
    def refused_removals(self) -> tuple[Removal, ...]:
        return tuple(removal for removal in self.removals if removal.refused)

    @property
    def denied(self) -> tuple[Violation, ...]:
        """The violations of mandatory rules that nobody approved; `up` refuses the whole plan then."""
        return self.verdict.denied if self.verdict else ()

    @property
    def is_refused(self) -> bool:
        """Whether `up` changes nothing, for a change that is refused or for what policies say."""
        return bool(self.refused or self.refused_removals or self.denied)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do. Tables that are unreadable may be there all the same."""
        return not self.changes and not self.foreign and not self.removals

    @property
    def takes_away(self) -> bool:
        """Whether it destroys data, or deletes or replaces a resource of any provider."""
        destroys = any(change.assessment.risk is Risk.DESTROYS for change in self.changes)
        deletes = any(resource.action == "delete" for resource in self.resources)
        return destroys or deletes or any(item.action in _TAKING_AWAY for item in self.foreign)

    def counts(self) -> dict[Action, int]:
        """How many resources are created, updated, deleted and left as they are."""
        totals: dict[Action, int] = {"create": 0, "update": 0, "delete": 0, "same": 0}
        for resource in self.resources:
            totals[resource.action] += 1
        return totals


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
    """What turns `live` into `graph`; an empty graph plans the deletion of everything that `owner` manages. Nothing is
    planned for tables that cannot be read.

    `owner` is the `project/stack` whose tables are deleted when nothing declares them any more, as are those that
    Pulumi's state of the stack has; others are left alone. `allow_destroy` holds the addresses whose data may be
    destroyed; `delete_savepoints`: tables that have savepoints may be deleted with them. A resource has the address by
    which it is declared, else the one by which Pulumi's state has it.
    """
    resources = []
    declared = set()
    for node in graph.nodes.values():
        table = live.of(node.spec) if isinstance(node.spec, TableSpec) else None
        if isinstance(table, Unreadable):
            continue
        if table is not None:
            declared.add(table.spec.address)
        before = table.spec if table else live.instance if isinstance(node.spec, InstanceSpec) else None
        resources.append(_plan_resource(node.address, before, node.spec, table, allow_destroy, read=live.read))
    for now, table in sorted(live.tables.items()):
        if now not in declared and (table.owner == owner or now in live.resources):
            address = live.resources.get(now, now)
            deleted = _plan_resource(address, table.spec, None, table, allow_destroy)
            resources.append(_with_savepoints(deleted, table.savepoints, allowed=delete_savepoints))
    resources = refuse_taken_names(resources, graph, live)
    if live.instance is not None and not graph.nodes:
        resources.append(_plan_resource(live.instance.address, live.instance, None, None, allow_destroy))
    unreadable = tuple(table for _, table in sorted(live.unreadable.items()))
    return Plan(instance, tuple(resources), tuple(foreign), unreadable=unreadable)


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
        refused = refusal(change, keys, has_rows=has_rows)
        if refused is None and assessment.risk is Risk.DESTROYS and not {address, now} & {*allow_destroy}:
            refused = f"destroys data; to allow it: --allow-destroy {address}"
        planned.append(PlannedChange(change, assessment, cause(change, after), refused))
    table_id = table.table_id if table else ""
    return ResourcePlan(address, _action(before, after, planned), tuple(planned), statistics, now, table_id)


def _with_savepoints(deleted: ResourcePlan, names: tuple[str, ...], *, allowed: bool) -> ResourcePlan:
    """The deletion of a table with these savepoints: it loses what they keep, and is refused unless they may go."""
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


def _action(before: Spec | None, after: Spec | None, planned: list[PlannedChange]) -> Action:
    if not planned:
        return "same"
    if before is None:
        return "create"
    return "delete" if after is None else "update"
