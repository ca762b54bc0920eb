"""What policies say, in every rendering: with a plan and alone. Hostile texts stay texts, comments keep their limit."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import RenderableType

from deployer.cli.console.output import ShownConsole
from deployer.errors import Position
from deployer.plan import Plan
from deployer.plan.render.html import plan_as_html, verdict_as_html
from deployer.plan.render.json_form import plan_as_json, verdict_document
from deployer.plan.render.markdown import COMMENT_LIMIT, plan_as_markdown, verdict_as_markdown
from deployer.plan.render.terminal import plan_as_tree, verdict_as_tree
from deployer.plan.verdict import Enforcement, RuleOutcome, Verdict, Violation, sorted_violations
from deployer.platform.text.visible import json_text
from tests.plan.lakes import EMPTY, FLIGHTS
from tests.plan.test_diff import TABLES
from tests.plan.test_render import HOSTILE, many, parsed, plan_of

GOLDEN = Path(__file__).parent / "golden" / "policy"
RULES = (
    RuleOutcome("key-change", Enforcement.MANDATORY, "Keys stay.", Position("policies/rules.yaml")),
    RuleOutcome("has-owner", Enforcement.ADVISORY, "Somebody is there.", Position("policies/owner.py", 4)),
    RuleOutcome("old", Enforcement.DISABLED, "", Position("policies/old.sql")),
)
BROKEN = Violation(
    "key-change",
    Enforcement.MANDATORY,
    FLIGHTS.address,
    "row keys carrier, flight → flight: a change of keys needs an approval",
    at=Position("specs/flights.yaml", 12, 3),
)
ADVISED = Violation("has-owner", Enforcement.ADVISORY, EMPTY.address, "it has no tag owner", "id")
APPROVED = replace(BROKEN, approved="by jane@example.org until 2026-12-31: TICKET-7")
NOTE = "policies/rules.yaml:9:1: the approval of key-change for table/air.empty is not used: remove it"
HOSTILE_RULE = Violation(HOSTILE, Enforcement.MANDATORY, HOSTILE, HOSTILE, HOSTILE, Position(HOSTILE), "")

CASES: dict[str, tuple[Plan, Verdict]] = {
    "refused": (
        plan_of(TABLES["row_keys"], EMPTY),
        Verdict(RULES, sorted_violations([APPROVED, ADVISED, BROKEN]), (NOTE,)),
    ),
    "advised": (plan_of(TABLES["row_keys"], EMPTY), Verdict(RULES, (ADVISED,))),
    "nothing_to_do": (plan_of(FLIGHTS, EMPTY), Verdict(RULES, (BROKEN, ADVISED))),
    "kept": (plan_of(TABLES["tags"], EMPTY), Verdict(RULES)),
    "no_rules": (plan_of(TABLES["tags"], EMPTY), Verdict()),
    "none_at_a_ref": (plan_of(TABLES["tags"], EMPTY), Verdict(notes=("there is no policies/ at main",), ref="main")),
    "of_a_ref": (plan_of(TABLES["tags"], EMPTY), Verdict(RULES, (BROKEN,), ref="origin/main")),
    "hostile": (
        plan_of(FLIGHTS, EMPTY),
        Verdict(
            (RuleOutcome(HOSTILE, Enforcement.MANDATORY, HOSTILE, Position(HOSTILE)),),
            (HOSTILE_RULE, replace(HOSTILE_RULE, approved=HOSTILE)),
            (HOSTILE,),
            HOSTILE,
        ),
    ),
}


def as_text(tree: RenderableType) -> str:
    out = StringIO()
    ShownConsole(file=out, width=1_000, highlight=False, markup=False).print(tree)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def inside(page: str) -> str:
    return page[page.index("<main>") : page.index("</body>")]


def renderings(plan: Plan) -> dict[str, str]:
    verdict = plan.verdict
    assert verdict is not None
    return {
        "tree": as_text(plan_as_tree(plan)),
        "tree, alone": as_text(verdict_as_tree(verdict)),
        "markdown": plan_as_markdown(plan),
        "markdown, alone": verdict_as_markdown(plan.instance, verdict),
        "html": inside(plan_as_html(plan)),
        "html, alone": inside(verdict_as_html(plan.instance, verdict)),
        "json": json_text(plan_as_json(plan)["policy"], indent=1),
        "json, alone": json_text(verdict_document(plan.instance, verdict), indent=1),
    }


@pytest.mark.parametrize("name", CASES)
def test_every_rendering_is_as_its_golden_file_says(name: str, update_golden: bool) -> None:
    plan, verdict = CASES[name]
    parts = renderings(replace(plan, verdict=verdict))
    text = "".join(f"===== {form}\n{rendered}\n" for form, rendered in parts.items())
    file = GOLDEN / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_pages_are_whole_run_nothing_and_fetch_nothing(name: str) -> None:
    plan, verdict = CASES[name]
    for page in (plan_as_html(replace(plan, verdict=verdict)), verdict_as_html(plan.instance, verdict)):
        parsed(page)
        assert "url(" not in page


def test_a_plan_without_policies_has_no_word_of_them() -> None:
    plan = plan_of(TABLES["row_keys"], EMPTY)
    assert "policy" not in plan_as_json(plan)
    for text in (as_text(plan_as_tree(plan)), plan_as_markdown(plan), inside(plan_as_html(plan))):
        assert "olic" not in text


def test_hostile_texts_do_nothing_in_markdown() -> None:
    plan, verdict = CASES["hostile"]
    for text in (plan_as_markdown(replace(plan, verdict=verdict)), verdict_as_markdown(plan.instance, verdict)):
        outside = "".join(part for index, part in enumerate(text.split("`")) if index % 2 == 0)
        assert "<img" not in outside
        assert "@everyone" not in outside
        assert "\u202e" not in text


@pytest.mark.parametrize("limit", [2_000, 20_000, COMMENT_LIMIT])
def test_violations_are_cut_at_the_limit_and_the_cut_is_said(limit: int) -> None:
    verdict = Verdict(RULES, (BROKEN,) * 2_000)
    plan = replace(many(200, lambda spec: replace(spec, row_keys=("carrier",))), verdict=verdict)
    for text in (plan_as_markdown(plan, limit), verdict_as_markdown("demo", verdict, limit)):
        assert len(text.encode()) <= limit
        assert "more violations or remarks" in text
        assert "2,000 mandatory" in text.splitlines()[0] + text


def test_mandatory_violations_come_first_and_refuse() -> None:
    verdict = Verdict(RULES, sorted_violations([APPROVED, ADVISED, BROKEN]))
    assert [each.status for each in verdict.violations] == ["mandatory", "advisory", "approved"]
    assert verdict.counts() == {"mandatory": 1, "advisory": 1, "approved": 1}
    plan = plan_of(FLIGHTS, EMPTY)
    assert [
        replace(plan, verdict=each).is_refused for each in (None, verdict, Verdict(RULES, (ADVISED, APPROVED)))
    ] == [
        False,
        True,
        False,
    ]
