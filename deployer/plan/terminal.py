"""A plan as a tree for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from deployer.plan.plan import GLYPHS, Action, Foreign, Plan, PlannedChange, ResourcePlan
from deployer.plan.risk import Risk
from deployer.plan.totals import LEFT_ALONE, foreign_counts, note_of
from deployer.plan.words import count, describe, size

if TYPE_CHECKING:
    from deployer.live.model import Unreadable
    from deployer.plan.monthly import MonthlyCost
    from deployer.plan.verdict import Verdict, Violation

_ACTION_STYLE: dict[Action, str] = {"create": "green", "update": "yellow", "delete": "red", "same": "dim"}
_RISK_STYLE = {Risk.SAFE: "green", Risk.REWRITES: "yellow", Risk.DESTROYS: "bold red"}
_STANDING_STYLE = {"mandatory": "bold red", "advisory": "yellow", "approved": "green"}


def plan_as_tree(plan: Plan) -> RenderableType:
    """The tree of changes with a summary below; resources without changes are only counted."""
    policies = [verdict_as_tree(plan.verdict), Text()] if plan.verdict else []
    if plan.is_empty and not plan.unreadable:
        done = Text(f"{plan.instance}: nothing to do, {count(len(plan.resources), 'resource')} as declared")
        return Group(done, *(Text(), *policies[:1]) if policies else ())
    tree = Tree(Text(plan.instance, style="bold"))
    for table in plan.unreadable:
        _add_unreadable(tree, table)
    for resource in plan.resources:
        if resource.changes:
            _add_resource(tree, resource)
    for item in plan.foreign:
        tree.add(_foreign(item))
    cost = [_cost(plan.cost)] if plan.cost else []
    return Group(tree, Text(), *policies, summary(plan), *cost)


def verdict_as_tree(verdict: Verdict) -> RenderableType:
    """What policies say: each violation, the worst first, and remarks."""
    from deployer.plan.verdict_words import verdict_line

    tree = Tree(Text("Policy: ", style="bold").append(verdict_line(verdict), style="not bold"))
    for violation in verdict.violations:
        tree.add(_violation(violation))
    for note in verdict.notes:
        tree.add(Text(f"{'note':<10}{note}", style="dim"))
    return tree


def _violation(violation: Violation) -> Text:
    line = Text(f"{violation.standing:<10}", style=_STANDING_STYLE[violation.standing])
    line.append(f"{violation.rule}  {violation.address}: {violation.message}", style="default not bold")
    if violation.at:
        line.append(f"  {violation.at}", style="not bold cyan")
    if violation.approved:
        line.append(f"\n          approved {violation.approved}", style="not bold dim")
    return line


def summary(plan: Plan) -> Text:
    """One line: `Plan: 6 to create, 1 to update; 2 refused`."""
    counts = plan.counts()
    verbs: tuple[tuple[Action, str], ...] = (("create", "to create"), ("update", "to update"), ("delete", "to delete"))
    parts = [f"{counts[action]} {verb}" for action, verb in verbs if counts[action]]
    parts += foreign_counts(plan)
    line = Text("Plan: ", style="bold").append(", ".join(parts) or "nothing to do", style="not bold")
    line.append(f", {counts['same']} unchanged", style="not bold")
    if plan.refused:
        line.append(f"; {len(plan.refused)} refused", style="bold red")
    if plan.unreadable:
        line.append(f"; {len(plan.unreadable)} unreadable", style="bold red")
    if plan.denied:
        line.append(f"; {count(len(plan.denied), 'mandatory violation')} of policies", style="bold red")
    return line


def _add_unreadable(tree: Tree, table: Unreadable) -> None:
    branch = tree.add(Text(f"! {table.address}", style="red"))
    line = Text("unreadable ", style="bold red").append(table.why, style="default not bold")
    branch.add(line.append(f"\n           {LEFT_ALONE}", style="not bold dim"))


def _add_resource(tree: Tree, resource: ResourcePlan) -> None:
    style = _ACTION_STYLE[resource.action]
    label = Text(f"{GLYPHS[resource.action]} {resource.address}", style=style)
    if resource.statistics.rows:
        label.append(
            f"  {count(resource.statistics.rows, 'row')}, {size(resource.statistics.bytes)}", style="not bold dim"
        )
    branch = tree.add(label)
    for change in resource.changes:
        branch.add(_change(change))


def _change(planned: PlannedChange) -> Text:
    assessment = planned.assessment
    line = Text(f"{assessment.risk.value:<8} ", style=_RISK_STYLE[assessment.risk])
    line.append(describe(planned.change), style="default not bold")
    note = note_of(planned)
    if note:
        line.append(f" ({note})", style="not bold dim")
    if planned.cause:
        line.append(f"  {planned.cause}", style="not bold cyan")
    if planned.refused:
        line.append(f"\n         refused: {planned.refused}", style="bold red")
    return line


def _cost(cost: MonthlyCost) -> Text:
    from deployer.plan.monthly import cost_words

    return Text("Cost: ", style="bold").append(cost_words(cost), style="not bold")


def _foreign(item: Foreign) -> Text:
    return Text(f"{item.action} {item.address} {item.detail}".rstrip())
