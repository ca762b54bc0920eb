"""A plan as values: every change with its risk, its cause, and the reason if it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deployer.errors import Position
from deployer.live.model import TableStatistics, Unreadable
from deployer.plan.assess.new_recordings import NewRecordings
from deployer.plan.assess.pending_backfills import PendingBackfill
from deployer.plan.assess.risk import Assessment, Risk
from deployer.plan.assess.view_refreshes import ViewRefresh
from deployer.plan.changes import Change
from deployer.plan.removals import Removal
from deployer.plan.targeting.targets import Targets

if TYPE_CHECKING:
    from deployer.plan.assess.cost_delta import MonthlyCost
    from deployer.plan.verdict import Verdict, Violation


Action = Literal["create", "update", "delete", "same"]


#: the sign of each action, as in Terraform and Pulumi
GLYPHS: Mapping[Action, str] = {"create": "+", "update": "~", "delete": "-", "same": " "}


#: operations that remove a resource of another provider
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
    """The plan of one resource; without changes, its action is `same`."""

    address: str
    action: Action
    changes: tuple[PlannedChange, ...]
    statistics: TableStatistics = TableStatistics()
    live_address: str = ""  #: id of the live table, which may now have another name; empty where there is none
    table_id: str = ""  #: of the live table too
    savepoints: tuple[str, ...] = ()  #: savepoints of a deleted table, the newest first: they are deleted with it


@dataclass(frozen=True, slots=True)
class Foreign:
    """An operation that does not change the lake, as the engine reports it. Its resource belongs to another provider,
    or only Pulumi's state needs it."""

    address: str
    action: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Resources in the order of the graph, deletions last.

    `unreadable` are tables of the lake that cannot be read: nothing is planned for them, and `up` does not change them,
    declared or not. `verdict` is None where the project has no policies, `cost` where nothing has a price or nothing
    changes. `removals` are data that `up` removes in addition to the changes. `targets` is None for a plan of the whole
    lake; otherwise the plan has only the targets. `pending_backfills` are notes about computed columns that lack
    values; `up` does not change them.
    """

    instance: str
    resources: tuple[ResourcePlan, ...]
    foreign: tuple[Foreign, ...] = ()
    verdict: Verdict | None = None
    cost: MonthlyCost | None = None
    removals: tuple[Removal, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    targets: Targets | None = None
    pending_backfills: tuple[PendingBackfill, ...] = ()
    refreshes: tuple[ViewRefresh, ...] = ()  #: refreshes of the declared views, which `up` does not run
    recordings: tuple[
        NewRecordings, ...
    ] = ()  #: below the sources of declared datasets; they are data, not differences

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
        """The violations of mandatory rules without an approval; with any, `up` refuses the whole plan."""
        return self.verdict.denied if self.verdict else ()

    @property
    def is_refused(self) -> bool:
        """Returns whether `up` refuses the plan, because of a refused change or because of policies."""
        return bool(self.refused or self.refused_removals or self.denied)

    @property
    def is_empty(self) -> bool:
        """Returns whether there is nothing to do. There may still be unreadable tables."""
        return not self.changes and not self.foreign and not self.removals

    @property
    def takes_away(self) -> bool:
        """Returns whether the plan destroys data, or deletes or replaces a resource of any provider."""
        destroys = any(change.assessment.risk is Risk.DESTROYS for change in self.changes)
        deletes = any(resource.action == "delete" for resource in self.resources)
        return destroys or deletes or any(item.action in _TAKING_AWAY for item in self.foreign)

    def counts(self) -> dict[Action, int]:
        """Returns how many resources are created, updated, deleted and unchanged."""
        totals: dict[Action, int] = {"create": 0, "update": 0, "delete": 0, "same": 0}
        for resource in self.resources:
            totals[resource.action] += 1
        return totals
