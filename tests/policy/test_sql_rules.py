"""Rules in SQL: the tables that they see, and what their rows become."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from deployer.errors import Position
from deployer.live.model import LiveLake
from deployer.plan.verdict import Enforcement
from deployer.policy.load import load_policies
from deployer.policy.rows import ChangeRow, ColumnRow, PlanView, ResourceRow
from deployer.policy.sql_rules import plan_tables
from tests.plan.lakes import EMPTY, FLIGHTS, with_column, without_column
from tests.policy.plans import NOW, aged, verdict_in, view_of

PLACED = replace(EMPTY, sources={"": Position("specs/e.yaml", 2), "columns.id": Position("specs/e.yaml", 5)})

# name: (SQL, plan, the violations as (address, column, message, place))
CASES: dict[str, tuple[str, PlanView, list[tuple[str, str, str, str]]]] = {
    "resources": (
        "SELECT address, 'no owner' AS message FROM resources WHERE tags['owner'] IS NULL",
        view_of(FLIGHTS, EMPTY),
        [("table/air.flights", "", "no owner", "None"), ("table/air.empty", "", "no owner", "None")],
    ),
    "columns": (
        "SELECT address, \"column\", type || ' is small' AS message FROM columns WHERE type LIKE 'int_6'",
        view_of(FLIGHTS, PLACED),
        [("table/air.flights", "gate.number", "int16 is small", "None")],
    ),
    "places": (
        "SELECT address, 'here' AS message, CAST(NULL AS STRING) AS \"column\" FROM resources WHERE name = 'empty'\n"
        "UNION ALL SELECT address, 'there', \"column\" FROM columns WHERE name_of = 'empty'".replace(
            "name_of", '"table"'
        ),
        view_of(PLACED),
        [("table/air.empty", "", "here", "specs/e.yaml:2:1"), ("table/air.empty", "id", "there", "specs/e.yaml:5:1")],
    ),
    "changes": (
        "SELECT address, change || ' ' || \"column\" || ' of ' || rows AS message FROM changes WHERE risk = 'destroys'",
        view_of(without_column("notes"), EMPTY),
        [("table/air.flights", "", "DropColumn notes of 336776", "None")],
    ),
    "ages": (
        "SELECT address, 'young' AS message FROM changes WHERE added_at > TIMESTAMP '2026-06-29T00:00:00Z'",
        view_of(without_column("notes"), EMPTY, since=aged(1)),
        [("table/air.flights", "", "young", "None")],
    ),
    "lists": (
        "SELECT address, array_to_string(row_keys, '+') AS message FROM resources WHERE array_length(row_keys) > 1",
        view_of(FLIGHTS, EMPTY),
        [("table/air.flights", "", "carrier+flight", "None")],
    ),
    "grouped": (
        "SELECT r.address, count(*) || ' columns' AS message FROM columns c JOIN resources r USING (address)\n"
        "WHERE NOT contains(c.\"column\", '.') GROUP BY r.address HAVING count(*) > 3",
        view_of(FLIGHTS, EMPTY),
        [("table/air.flights", "", "6 columns", "None")],
    ),
    "no_changes": ("SELECT address, '' AS message FROM changes", view_of(FLIGHTS, EMPTY), []),
    "nothing_declared": (
        "SELECT address, '' AS message FROM resources UNION SELECT address, '' FROM columns",
        PlanView("dev", "demo", (), (), (), NOW),
        [],
    ),
    "comments_and_a_semicolon": (
        "/* several\nlines */ SELECT address, 'x' AS message FROM resources -- all\nWHERE kind = 'instance';",
        view_of(EMPTY),
        [("instance/demo", "", "x", "None")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_row_is_a_violation(name: str, tmp_path: Path) -> None:
    sql, plan, expected = CASES[name]
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "My rule.sql").write_text(sql, encoding="utf-8")
    violations = verdict_in(tmp_path, plan).violations
    assert sorted((each.address, each.column, each.message, str(each.at)) for each in violations) == sorted(expected)
    assert {each.rule for each in violations} <= {"my-rule"}


def test_the_comment_in_front_says_how_it_is_enforced(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.sql").write_text(
        "-- Money is\n-- name: no-floats\n--Enforcement : advisory\n\n-- never a float.\n-- stacks: prod, st*\n"
        "-- addresses: table/pay.*\nSELECT 1\n-- name: of no meaning here\n",
        encoding="utf-8",
    )
    [rule] = load_policies(tmp_path).rules
    assert (rule.name, rule.enforcement, rule.description) == (
        "no-floats",
        Enforcement.ADVISORY,
        "Money is never a float.",
    )
    assert (rule.stacks, rule.addresses) == (("prod", "st*"), ("table/pay.*",))


def test_tables_have_every_field_of_the_rows() -> None:
    spec = replace(with_column("delay", replace(FLIGHTS.columns[2], name="late")), tags={"b": "2", "a": "1"})
    plan = view_of(spec, EMPTY, live=LiveLake(None))
    tables = plan_tables(plan)
    for name, kind, rows in (
        ("changes", ChangeRow, plan.changes),
        ("resources", ResourceRow, plan.resources),
        ("columns", ColumnRow, plan.columns),
    ):
        names = [each.name for each in fields(kind) if each.name != "at"]
        assert set(tables[name].column_names) == {*names, "file", "line"}
        for row, made in zip(rows, tables[name].to_pylist(), strict=True):
            for field in names:
                value = getattr(row, field)
                if isinstance(value, Mapping):
                    value = sorted(value.items())
                assert made[field] == (list(value) if isinstance(value, tuple) else value), field


def test_moments_keep_their_zone() -> None:
    plan = view_of(without_column("notes"), EMPTY, since=aged(2))
    [row] = plan_tables(plan)["changes"].to_pylist()
    assert row["added_at"] == NOW - dt.timedelta(days=2)
