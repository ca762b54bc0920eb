"""Rules in Python: what they see, how they are named, and that they disturb nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from deployer.live.model import LiveLake
from deployer.plan.verdict import Enforcement, Verdict
from deployer.policy import Finding, PlanView, rule
from deployer.policy.load import load_policies
from tests.plan.lakes import EMPTY, FLIGHTS, without_column
from tests.policy.plans import verdict_in, view_of

HEAD = "from collections.abc import Iterator\nfrom deployer.policy import Finding, PlanView, rule\n\n\n"


def written(project: Path, **files: str) -> Path:
    (project / "policies").mkdir()
    for name, text in files.items():
        (project / "policies" / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
    return project


def output(verdict: Verdict) -> list[tuple[str, str, str, str]]:
    return [(each.rule, each.address, each.column, each.message) for each in verdict.violations]


CASES: dict[str, tuple[str, PlanView, list[tuple[str, str, str, str]]]] = {
    "tables": (
        "@rule\ndef keyed(plan):\n"
        "    for table in plan.tables:\n"
        "        if len(table.row_keys) > 1:\n"
        "            yield table.violation(f'{len(table.row_keys)} row keys')\n",
        view_of(FLIGHTS, EMPTY),
        [("keyed", "table/air.flights", "", "2 row keys")],
    ),
    "changes": (
        "@rule(name='kinds')\ndef anything(plan):\n"
        "    return [change.violation(f'{change.change} {change.risk} {change.rows}') for change in plan.changes]\n",
        view_of(without_column("notes"), EMPTY),
        [("kinds", "table/air.flights", "notes", "DropColumn destroys 336776")],
    ),
    "columns": (
        "@rule\ndef small_numbers(plan):\n"
        "    return (c.violation(c.type) for c in plan.columns if c.type == 'int16' and not c.is_row_key)\n",
        view_of(FLIGHTS),
        [("small-numbers", "table/air.flights", "gate.number", "int16")],
    ),
    "a_finding_of_its_own": (
        "@rule\ndef few_tables(plan):\n"
        "    if len(plan.tables) > 1:\n"
        "        yield Finding('instance/' + plan.instance, f'{len(plan.tables)} tables')\n",
        view_of(FLIGHTS, EMPTY),
        [("few-tables", "instance/demo", "", "2 tables")],
    ),
    "lines_become_one": (
        "@rule\ndef f(plan):\n    return [Finding('a', 'first\\n::second   third')]\n",
        view_of(FLIGHTS),
        [("f", "a", "", "first ::second third")],
    ),
    "nothing": ("@rule\ndef f(plan):\n    return None\n", view_of(FLIGHTS), []),
    "helpers_and_dataclasses_of_the_file": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Limit:\n    columns: int = 3\n\n\n"
        "def over(table_columns: int) -> bool:\n    return table_columns > Limit().columns\n\n\n"
        "@rule\ndef f(plan):\n    return [Finding('a', 'many')] if over(len(plan.columns)) else []\n",
        view_of(FLIGHTS),
        [("f", "a", "", "many")],
    ),
    "new_tables_only": (
        "@rule\ndef f(plan):\n    return [table.violation(table.action) for table in plan.tables if table.is_new]\n",
        view_of(FLIGHTS, live=LiveLake(None)),
        [("f", "table/air.flights", "", "create")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rules_see_the_plan(name: str, tmp_path: Path) -> None:
    text, plan, expected = CASES[name]
    if text.startswith("from __future__"):
        (tmp_path / "policies").mkdir()
        first, rest = text.split("\n", 1)
        (tmp_path / "policies" / "a.py").write_text(f"{first}\n{HEAD}{rest}", encoding="utf-8")
    else:
        written(tmp_path, a=text)
    assert output(verdict_in(tmp_path, plan)) == expected


def test_rules_come_in_the_order_of_files_and_lines_with_their_first_line_of_words(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        b="@rule\ndef third(plan):\n    return []\n",
        a='@rule(enforcement="advisory", stacks=["prod"])\ndef second_last(plan):\n    """Says what.\n\n    And more.\n'
        '    """\n    return []\n\n\nagain = second_last\n\n\n@rule()\ndef first_no_more(plan):\n    return []\n',
    )
    with load_policies(folder) as policies:
        rules = policies.rules
    assert [(each.name, each.enforcement, each.description, each.stacks) for each in rules] == [
        ("second-last", Enforcement.ADVISORY, "Says what.", ("prod",)),
        ("first-no-more", Enforcement.MANDATORY, "", ()),
        ("third", Enforcement.MANDATORY, "", ()),
    ]
    assert [str(each.at) for each in rules] == [
        "policies/a.py:5:1",
        "policies/a.py:17:1",
        "policies/b.py:5:1",
    ]


def test_what_rules_print_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, a="print('loading')\n\n\n@rule\ndef f(plan):\n    print('asked')\n    return []\n")
    verdict_in(tmp_path, view_of(FLIGHTS))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "policies: loading\npolicies: asked\n")


def test_loading_leaves_no_traces(tmp_path: Path) -> None:
    before, path = set(sys.modules), list(sys.path)
    written(tmp_path, json="@rule\ndef f(plan):\n    return []\n")  # named as a module of the standard library
    with load_policies(tmp_path) as policies:
        assert [each.name for each in policies.rules] == ["f"]
    assert {name for name in set(sys.modules) - before if "polic" in name} == set()
    assert (sys.path, sys.modules["json"]) == (path, json)
    assert [path.name for path in (tmp_path / "policies").iterdir()] == ["json.py"]  # and no compiled files


def test_a_rule_can_be_called_as_the_function_that_it_is() -> None:
    @rule
    def loud(plan: PlanView) -> list[Finding]:
        return [table.violation("loud") for table in plan.tables]

    assert loud(view_of(EMPTY)) == [Finding("table/air.empty", "loud")]
