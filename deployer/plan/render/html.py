"""Renders a plan as one self-contained HTML page: it includes its styles and has no scripts.

`render_page` makes such pages of the package's templates, with everything that they show escaped.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from deployer.plan.assess.cost_delta import describe_cost
from deployer.plan.assess.pending_backfills import describe_pending
from deployer.plan.model import Plan
from deployer.plan.removals import describe_removal
from deployer.plan.render.changes import describe
from deployer.plan.render.escaping import plain
from deployer.plan.render.totals import (
    LEFT_ALONE,
    apply_command,
    describe_saved_plan,
    extents,
    foreign_title,
    headline,
    note_of,
    parted,
    verdict_line,
)
from deployer.plan.saved.seal import SavedAs
from deployer.plan.targeting.targets import describe_targets
from deployer.plan.verdict import Verdict
from deployer.platform.text.formatting import count, size


def plan_as_html(plan: Plan, against: str | None = None, saved: SavedAs | None = None) -> str:
    """Returns the whole plan, risky changes first and safe ones folded; resources without changes are only counted.

    `against`: the Git ref whose specs the plan was made from, where no live state was read. `saved`: the plan's file.
    """
    return render_page("plan.html.j2", **plan_values(plan, against, saved))


def plan_values(plan: Plan, against: str | None = None, saved: SavedAs | None = None) -> dict[str, Any]:
    """Returns the values for `plan_body.html.j2`."""
    resources = [(resource, *parted(resource)) for resource in plan.resources]
    safe = [len(changes) for _, _, changes in resources if changes]
    return {
        "verdict": plan.verdict,
        "verdict_line": verdict_line,
        "plan": plan,
        "parted": resources,
        "against": against,
        "saved": f"{describe_saved_plan(saved)}; to apply exactly this: {apply_command(saved)}" if saved else "",
        "targeted": describe_targets(plan.targets) if plan.targets else "",
        "any_risky": any(risky for _, risky, _ in resources),
        "cost": describe_cost(plan.cost) if plan.cost else "",
        "counts": plan.counts(),
        "describe": describe,
        "extents": extents(plan),
        "left_alone": LEFT_ALONE,
        "foreign_title": foreign_title(plan),
        "headline": headline(plan),
        "note_of": note_of,
        "refused": len(plan.refused) + len(plan.refused_removals),
        "describe_removal": describe_removal,
        "describe_pending": describe_pending,
        "safe_title": f"{count(sum(safe), 'safe change')} to {count(len(safe), 'resource')}" if safe else "",
    }


def verdict_as_html(instance: str, verdict: Verdict) -> str:
    """Returns only the verdict of policies."""
    return render_page("policy.html.j2", instance=instance, verdict=verdict, verdict_line=verdict_line)


def render_page(template: str, **values: Any) -> str:
    """Returns the page of `template`: `css` is the stylesheet of all pages, `plain` makes untrusted texts one clean
    line."""
    environment = page_environment()
    loader = environment.loader
    assert loader is not None  # noqa: S101 -- set where the environment is made
    css = Markup(loader.get_source(environment, "page.css")[0])  # noqa: S704 -- a file of this package
    return environment.get_template(template).render(css=css, **values).rstrip() + "\n"


@cache
def page_environment(*packages: str) -> Environment:
    """Returns the environment of pages, with everything escaped: the templates of `packages`, and of this package."""
    loaders = [PackageLoader(package, "templates") for package in (*packages, "deployer.plan")]
    environment = Environment(loader=ChoiceLoader(loaders), autoescape=True, undefined=StrictUndefined)
    environment.globals.update(count=count, size=size)
    environment.filters["plain"] = lambda value: plain(str(value))
    environment.filters["prose"] = _prose
    return environment


def _prose(value: Any) -> Markup:
    """Returns one of this project's sentences as one clean line, with text between backticks as code."""
    parts = plain(str(value)).split("`")
    if not len(parts) % 2:  # a backtick has no partner
        return escape("`".join(parts))
    return Markup().join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))
