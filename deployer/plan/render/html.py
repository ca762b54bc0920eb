"""A plan as one HTML page that needs nothing else: styles are inside, there are no scripts."""

from __future__ import annotations

from deployer.plan.cost_delta import describe_cost
from deployer.plan.model import Plan
from deployer.plan.removals import describe_removal
from deployer.plan.render.changes import describe
from deployer.plan.render.saved_plan import apply_command, describe_saved_plan
from deployer.plan.render.templating import render_page
from deployer.plan.render.totals import LEFT_ALONE, extents, foreign_title, headline, note_of, parted
from deployer.plan.render.verdict import verdict_line
from deployer.plan.saved.seal import SavedAs
from deployer.plan.targets import describe_targets
from deployer.plan.verdict import Verdict
from deployer.text.formatting import count


def plan_as_html(plan: Plan, against: str | None = None, saved: SavedAs | None = None) -> str:
    """The whole plan, risky changes first and safe ones folded; resources without changes are only counted.

    `against`: the Git ref whose specs it was made from, where no live state was read. `saved`: the file that has it.
    """
    resources = [(resource, *parted(resource)) for resource in plan.resources]
    safe = [len(changes) for _, _, changes in resources if changes]
    return render_page(
        "plan.html.j2",
        verdict=plan.verdict,
        verdict_line=verdict_line,
        plan=plan,
        parted=resources,
        against=against,
        saved=f"{describe_saved_plan(saved)}; to apply exactly this: {apply_command(saved)}" if saved else "",
        targeted=describe_targets(plan.targets) if plan.targets else "",
        any_risky=any(risky for _, risky, _ in resources),
        cost=describe_cost(plan.cost) if plan.cost else "",
        counts=plan.counts(),
        describe=describe,
        extents=extents(plan),
        left_alone=LEFT_ALONE,
        foreign_title=foreign_title(plan),
        headline=headline(plan),
        note_of=note_of,
        refused=len(plan.refused) + len(plan.refused_removals),
        describe_removal=describe_removal,
        safe_title=f"{count(sum(safe), 'safe change')} to {count(len(safe), 'resource')}" if safe else "",
    )


def verdict_as_html(instance: str, verdict: Verdict) -> str:
    """What policies say, alone."""
    return render_page("policy.html.j2", instance=instance, verdict=verdict, verdict_line=verdict_line)
