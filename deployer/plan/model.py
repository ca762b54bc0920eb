"""A plan as values: every change with its risk, its cause and whether it may be applied."""

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
    """The plan of one resource; no changes means `same`."""

    address: str
    action: Action
    changes: tuple[PlannedChange, ...]
    statistics: TableStatistics = TableStatistics()
    live_address: str = ""  #: of the live table, which may have another name now; empty where there is none
    table_id: str = ""  #: of the live table too
    savepoints: tuple[str, ...] = ()  #: of a table that is deleted, the newest first: they go with it


@dataclass(frozen=True, slots=True)
class Foreign:
    """An operation that does not change the lake, as the engine reports it: on a resource of another provider, or one
    that only Pulumi's state needs."""

    address: str
    action: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Resources in the order of the graph, deletions last.

    `unreadable` are tables of the lake that cannot be read: nothing is planned for them, and `up` leaves them as they
    are, declared or not. `verdict` is None where the project has no policies, `cost` where nothing is paid for or
    changed. `removals` are data that goes beside what the changes say. `targets` is None where the plan is of the whole
    lake; else it has nothing of other resources than those. `pending_backfills` are computed columns that lack values:
    notes, of which `up` changes nothing.
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
    refreshes: tuple[ViewRefresh, ...] = ()  #: of the declared views, which `up` does not do
    recordings: tuple[NewRecordings, ...] = ()  #: below the sources of declared datasets: data, and no difference

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
        """Returns whether `up` changes nothing, for a change that is refused or for what policies say."""
        return bool(self.refused or self.refused_removals or self.denied)

    @property
    def is_empty(self) -> bool:
        """Returns whether there is nothing to do. Tables that are unreadable may be there all the same."""
        return not self.changes and not self.foreign and not self.removals

    @property
    def takes_away(self) -> bool:
        """Returns whether it destroys data, or deletes or replaces a resource of any provider."""
        destroys = any(change.assessment.risk is Risk.DESTROYS for change in self.changes)
        deletes = any(resource.action == "delete" for resource in self.resources)
        return destroys or deletes or any(item.action in _TAKING_AWAY for item in self.foreign)

    def counts(self) -> dict[Action, int]:
        """Returns how many resources are created, updated, deleted and left as they are."""
        totals: dict[Action, int] = {"create": 0, "update": 0, "delete": 0, "same": 0}
        for resource in self.resources:
            totals[resource.action] += 1
        return totals
