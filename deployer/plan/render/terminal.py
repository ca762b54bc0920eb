"""A plan as a tree for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from deployer.plan.assess.new_recordings import describe_recordings
from deployer.plan.assess.pending_backfills import PendingBackfill, describe_pending
from deployer.plan.assess.risk import Risk
from deployer.plan.assess.view_refreshes import describe_refresh
from deployer.plan.model import GLYPHS, Action, Foreign, Plan, PlannedChange, ResourcePlan
from deployer.plan.removals import Removal, describe_removal
from deployer.plan.render.changes import describe
from deployer.plan.render.totals import LEFT_ALONE, foreign_counts, note_of, removal_total
from deployer.plan.targeting.targets import describe_targets
from deployer.platform.text.folding import FoldedLine
from deployer.platform.text.formatting import count, size

if TYPE_CHECKING:
    from deployer.live.model import Unreadable
    from deployer.plan.assess.cost_delta import MonthlyCost
    from deployer.plan.targeting.targets import Targets
    from deployer.plan.verdict import Verdict, Violation

_ACTION_STYLE: dict[Action, str] = {"create": "green", "update": "yellow", "delete": "red", "same": "dim"}
_RISK_STYLE = {Risk.SAFE: "green", Risk.REWRITES: "yellow", Risk.EXTERNAL: "bold magenta", Risk.DESTROYS: "bold red"}
_STATUS_STYLE = {"mandatory": "bold red", "advisory": "yellow", "approved": "green"}


def plan_as_tree(plan: Plan) -> RenderableType:
    """Returns the tree of changes with a summary below; resources without changes are only counted."""
    policies = [verdict_as_tree(plan.verdict), Text()] if plan.verdict else []
    targeted = [_targeted(plan.targets)] if plan.targets else []
    notes = [_pending(each) for each in plan.pending_backfills]
    if plan.is_empty and not plan.unreadable:
        done = Text(f"{plan.instance}: nothing to do, {count(len(plan.resources), 'resource')} as declared")
        judged = (Text(), *policies[:1]) if policies else ()
        return Group(FoldedLine(done, 4), *notes, *targeted, *_data(plan), *judged)
    tree = Tree(Text(plan.instance, style="bold"))
    for table in plan.unreadable:
        _add_unreadable(tree, table)
    for resource in plan.resources:
        if resource.changes:
            _add_resource(tree, resource)
    for item in plan.foreign:
        tree.add(_foreign(item))
    for removal in plan.removals:
        tree.add(_removal(removal))
    cost = [_cost(plan.cost)] if plan.cost else []
    return Group(tree, Text(), *policies, FoldedLine(summary(plan), 6), *targeted, *_data(plan), *cost, *notes)


def verdict_as_tree(verdict: Verdict) -> RenderableType:
    """Returns the verdict of policies: each violation, the worst first, and remarks."""
    from deployer.plan.render.totals import verdict_line

    tree = Tree(FoldedLine(Text("Policy: ", style="bold").append(verdict_line(verdict), style="not bold"), 10))
    for violation in verdict.violations:
        tree.add(_violation(violation))
    for note in verdict.notes:
        tree.add(FoldedLine(Text(f"{'note':<10}{note}", style="dim"), 10))
    return tree


def _violation(violation: Violation) -> RenderableType:
    line = Text(f"{violation.status:<10}", style=_STATUS_STYLE[violation.status])
    line.append(f"{violation.rule}  {violation.address}: {violation.message}", style="default not bold")
    if violation.at:
        line.append(f"  {violation.at}", style="not bold cyan")
    approved = f"approved {violation.approved}" if violation.approved else ""
    return _with_more(line, Text(approved, style="dim"), 10)


def summary(plan: Plan) -> Text:
    """Returns one line: `Plan: 6 to create, 1 to update; 2 refused`."""
    counts = plan.counts()
    verbs: tuple[tuple[Action, str], ...] = (("create", "to create"), ("update", "to update"), ("delete", "to delete"))
    parts = [f"{counts[action]} {verb}" for action, verb in verbs if counts[action]]
    parts += [*foreign_counts(plan), *filter(None, [removal_total(plan)])]
    line = Text("Plan: ", style="bold").append(", ".join(parts) or "nothing to do", style="not bold")
    line.append(f", {counts['same']} unchanged", style="not bold")
    if refused := len(plan.refused) + len(plan.refused_removals):
        line.append(f"; {refused} refused", style="bold red")
    if plan.unreadable:
        line.append(f"; {len(plan.unreadable)} unreadable", style="bold red")
    if plan.denied:
        line.append(f"; {count(len(plan.denied), 'mandatory violation')} of policies", style="bold red")
    return line


def _targeted(targets: Targets) -> RenderableType:
    return FoldedLine(Text("Targeted: ", style="bold").append(describe_targets(targets), style="not bold"), 10)


def _data(plan: Plan) -> list[RenderableType]:
    """Returns a line for each view that has something to refresh, and for each dataset with new recordings."""
    lines = [("Refresh: ", describe_refresh(each)) for each in plan.refreshes if each.mode != "none"]
    lines += [("Recordings: ", describe_recordings(each)) for each in plan.recordings if not each.is_empty]
    return [FoldedLine(Text(label, style="bold").append(text, style="not bold"), len(label)) for label, text in lines]


def _add_unreadable(tree: Tree, table: Unreadable) -> None:
    branch = tree.add(FoldedLine(Text(f"! {table.address}", style="red"), 11))
    line = Text("unreadable ", style="bold red").append(table.why, style="default not bold")
    branch.add(_with_more(line, Text(LEFT_ALONE, style="not bold dim"), 11))


def _add_resource(tree: Tree, resource: ResourcePlan) -> None:
    style = _ACTION_STYLE[resource.action]
    label = Text(f"{GLYPHS[resource.action]} {resource.address}", style=style)
    if resource.statistics.rows:
        label.append(
            f"  {count(resource.statistics.rows, 'row')}, {size(resource.statistics.bytes)}", style="not bold dim"
        )
    branch = tree.add(FoldedLine(label, 9))
    for change in resource.changes:
        branch.add(_change(change))


def _change(planned: PlannedChange) -> RenderableType:
    assessment = planned.assessment
    line = Text(f"{assessment.risk.value:<8} ", style=_RISK_STYLE[assessment.risk])
    line.append(describe(planned.change), style="default not bold")
    note = note_of(planned)
    if note:
        line.append(f" ({note})", style="not bold dim")
    if planned.cause:
        line.append(f"  {planned.cause}", style="not bold cyan")
    refused = f"refused: {planned.refused}" if planned.refused else ""
    return _with_more(line, Text(refused, style="bold red"), 9)


def _with_more(line: Text, more: Text, indent: int) -> RenderableType:
    """Returns a line of the tree whose text begins at column `indent`, and a second line below it unless that is
    empty."""
    below = [FoldedLine(Text(" " * indent).append_text(more), indent)] if more else []
    return Group(FoldedLine(line, indent), *below)


def _cost(cost: MonthlyCost) -> RenderableType:
    from deployer.plan.assess.cost_delta import describe_cost

    return FoldedLine(Text("Cost: ", style="bold").append(describe_cost(cost), style="not bold"), 6)


def _removal(removal: Removal) -> RenderableType:
    line = Text("removes  ", style="bold red").append(removal.address, style="not bold")
    line.append(f" {describe_removal(removal)}", style="default not bold")
    refused = f"refused: {removal.refused}" if removal.refused else ""
    return _with_more(line, Text(refused, style="bold red"), 9)


def _pending(pending: PendingBackfill) -> RenderableType:
    line = Text("Note: ", style="bold").append(pending.address, style="not bold")
    return FoldedLine(line.append(f" {describe_pending(pending)}", style="not bold"), 6)


def _foreign(item: Foreign) -> RenderableType:
    return FoldedLine(Text(f"{item.action} {item.address} {item.detail}".rstrip()), 9)
