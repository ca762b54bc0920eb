"""docs/policy.md is true: its rules run and find what they should, and it names every rule, option and field."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from deployer.plan.verdict import Verdict
from deployer.policy.builtin import BUILTIN
from deployer.policy.rows import ChangeRow, ColumnRow, PlanView, ResourceRow
from deployer.specs.types.types import Column, Scalar
from tests.plan.lakes import EMPTY, FLIGHTS, LIVE
from tests.policy.plans import verdict_in, view_of
from tests.projects import REPOSITORY

PAGE = (REPOSITORY / "docs" / "policy.md").read_text(encoding="utf-8")
PRICED = replace(EMPTY, columns=(*EMPTY.columns, Column("ticket_price", Scalar("float64"))))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def judged(folder: Path, suffix: str, text: str, plan: PlanView) -> Verdict:
    (folder / "policies").mkdir()
    (folder / "policies" / f"rules{suffix}").write_text(text, encoding="utf-8")
    return verdict_in(folder, plan)


def two_rewrites() -> PlanView:
    other = replace(FLIGHTS, name="others")
    live = replace(LIVE, tables={**LIVE.tables, other.address: replace(LIVE.tables[FLIGHTS.address], spec=other)})
    changed = [replace(spec, row_keys=("carrier",), split_points=(("DL",),)) for spec in (FLIGHTS, other)]
    return view_of(*changed, EMPTY, live=live, stack="prod")


def test_the_python_rules_find_what_they_say(tmp_path: Path) -> None:
    [text] = blocks("python")
    open_gold = replace(FLIGHTS, deletion_protection=False)
    for number, (plan, rule, found) in enumerate(
        [
            (view_of(FLIGHTS, EMPTY), "", 0),
            (view_of(open_gold, EMPTY), "gold-is-protected", 1),
            (two_rewrites(), "few-rewrites", 2),
            (replace(two_rewrites(), stack="dev"), "", 0),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        verdict = judged(folder, ".py", text, plan)
        assert [each.rule for each in verdict.violations] == [rule] * found


@pytest.mark.parametrize(
    ("number", "plan", "expected"),
    [
        pytest.param(0, view_of(FLIGHTS, PRICED), ["use decimal128 for ticket_price"], id="floats"),
        pytest.param(1, view_of(FLIGHTS, PRICED), ["a gold table without an owner"], id="owners"),
        pytest.param(1, view_of(PRICED), [], id="owners of other tables"),
    ],
)
def test_the_sql_rules_find_what_they_say(number: int, plan: PlanView, expected: list[str], tmp_path: Path) -> None:
    verdict = judged(tmp_path, ".sql", blocks("sql")[number], plan)
    assert [each.message for each in verdict.violations] == expected


def test_every_rule_and_option_is_there() -> None:
    for name, rule in BUILTIN.items():
        [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        for option in rule.properties:
            assert f"`{option}`" in row, (name, option)


@pytest.mark.parametrize(
    ("table", "kind"), [("changes", ChangeRow), ("resources", ResourceRow), ("columns", ColumnRow)]
)
def test_every_field_that_rules_see_is_there(table: str, kind: type) -> None:
    [part] = re.findall(rf"\| `{table}`: .*?\n\n", PAGE, re.DOTALL)
    reported = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in part.splitlines()[2:] if line)))
    assert reported == {each.name for each in fields(kind)} - {"at"}
