"""The monthly cost that a plan changes, in every rendering."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deployer.plan import Plan
from deployer.plan.assess.cost_delta import MonthlyCost, describe_cost
from deployer.plan.render.html import plan_as_html
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.render.markdown import COMMENT_LIMIT, plan_as_markdown
from deployer.plan.render.terminal import plan_as_tree
from tests.plan.lakes import EMPTY, FLIGHTS
from tests.plan.test_diff import TABLES
from tests.plan.test_render import HOSTILE, LONG, many, plan_of
from tests.plan.test_render_policy import as_text, inside

GOLDEN = Path(__file__).parent / "golden" / "cost"
REGION, DATED = "eu-central-1", "2025-06-30"
COSTS = {
    "more": MonthlyCost(3.1, 15.5, "USD", REGION, DATED),
    "less": MonthlyCost(1234.567, 0.4, "USD", REGION, DATED),
    "as_before": MonthlyCost(15.5, 15.501, "USD", REGION, DATED),
    "partly_known": MonthlyCost(
        0.0, 2.0, "USD", REGION, DATED, ("vCPUs of application/small", "memory of application/small")
    ),
    "not_known": MonthlyCost(0.0, 0.0, "USD", "xx-north-1", DATED, ("storage of bucket/lakes",)),
    "no_region": MonthlyCost(0.0, 0.0, "USD", None, DATED, ("storage of bucket/lakes",)),
    "hostile": MonthlyCost(0.0, 1.0, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,)),
}


def renderings(plan: Plan) -> dict[str, str]:
    return {
        "terminal": as_text(plan_as_tree(plan)),
        "markdown": plan_as_markdown(plan),
        "html": inside(plan_as_html(plan)),
        "json": json.dumps(plan_as_json(plan), indent=1, ensure_ascii=False),
    }


@pytest.mark.parametrize("name", COSTS)
def test_every_rendering_is_as_its_golden_file_says(name: str, update_golden: bool) -> None:
    plan = replace(plan_of(TABLES["tags"], EMPTY), cost=COSTS[name])
    text = "".join(f"===== {form}\n{rendered}\n" for form, rendered in renderings(plan).items())
    file = GOLDEN / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_without_a_cost_no_rendering_has_one() -> None:
    for rendered in renderings(plan_of(TABLES["tags"], EMPTY)).values():
        assert "cost" not in rendered.lower()
    assert plan_of(FLIGHTS, EMPTY).cost is None


def test_what_is_too_long_for_a_comment_keeps_its_limit() -> None:
    plan = replace(many(200, LONG["both"][0]), cost=COSTS["partly_known"])
    text = plan_as_markdown(plan)
    assert len(text.encode()) <= COMMENT_LIMIT and describe_cost(COSTS["more"]) not in text
    assert "**cost** about +2.00 USD a month" in text
