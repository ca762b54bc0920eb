"""Each built-in rule: what breaks it, what passes, what it cannot check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deployer.live.model import LiveLake
from deployer.plan.verdict import Verdict
from deployer.policy.builtin import BUILTIN
from deployer.policy.rows import PlanView
from deployer.specs.model import ServiceSpec, TableSpec
from deployer.specs.types.types import Column, Scalar, Struct
from tests.plan.lakes import EMPTY, FLIGHTS, with_column, without_column
from tests.policy.plans import aged, unknown, verdict_in, view_of, without_sizes


def verdict_of(tmp_path: Path, text: str, plan: PlanView) -> Verdict:
    """What the rules of one YAML file say of a plan."""
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "rules.yaml").write_text(text, encoding="utf-8")
    return verdict_in(tmp_path, plan)


def policy(rule: str, **options: object) -> str:
    import yaml

    return yaml.safe_dump({"kind": "Policy", "rule": rule, **options})


DROPPED = without_column("notes")
REKEYED = replace(FLIGHTS, row_keys=("flight",), split_points=((100,),))
RESORTED = replace(FLIGHTS, sort_keys=())
RESPLIT = replace(FLIGHTS, split_points=(("DL",),))
WIDENED = with_column("delay", Column("delay", Scalar("int64")))
BAD_NAME = replace(EMPTY, name="Bad", database="Air")
RENAMED = replace(FLIGHTS, name="Departures", renamed_from="flights")
ADDED = replace(FLIGHTS, columns=(*FLIGHTS.columns, Column("Late", Struct((Column("ByHours", Scalar("int8")),)))))
CAPITAL = with_column("delay", Column("Delay", Scalar("int32"), renamed_from="delay"))
OWNED = replace(EMPTY, tags={"owner": "team-a"}, description="Nothing yet.")


def published(*targets: dict[str, str], raw: bool = False) -> TableSpec:
    options = {"targets": str(targets)} if raw else {"targets": list(targets)}
    return replace(EMPTY, services=(ServiceSpec("METASYNC", None, None, options, raw),))


CATALOG = {"type": "rest", "uri": "https://catalog.example.com/lance", "token_variable": "DEPLOYER_TOKEN_CATALOG"}
NOT_LISTED = "it publishes the table to {}, which the rule's `allow` does not list"

# name: (rule, options, plan, what its violations say, what its remarks say)
CASES: dict[str, tuple[str, dict[str, object], PlanView, list[str], list[str]]] = {
    "age_young": (
        "column-age",
        {"days": 30},
        view_of(DROPPED, EMPTY, since=aged(29.5)),
        ["column notes is 29 days old and may be dropped after 30 days"],
        [],
    ),
    "age_of_a_day": (
        "column-age",
        {"days": 1},
        view_of(DROPPED, EMPTY, since=aged(0)),
        ["column notes is 0 days old and may be dropped after 1 day"],
        [],
    ),
    "age_old": ("column-age", {"days": 30}, view_of(DROPPED, EMPTY, since=aged(30)), [], []),
    "age_unknown": (
        "column-age",
        {"days": 30},
        view_of(DROPPED, EMPTY, since=unknown),
        ["column notes may be dropped after 30 days, and its age is unknown"],
        [],
    ),
    "age_not_kept_so_far": (
        "column-age",
        {"days": 30},
        view_of(DROPPED, EMPTY, since=aged(8, at_least=True)),
        ["column notes is 8 days old, or older than its log shows, and may be dropped after 30 days"],
        [],
    ),
    "age_kept_far_enough": ("column-age", {"days": 7}, view_of(DROPPED, EMPTY, since=aged(8, at_least=True)), [], []),
    "age_against_a_ref": (
        "column-age",
        {"days": 30},
        view_of(DROPPED, EMPTY, since=None, live=without_sizes()),
        [],
        ["column-age was not checked for table/air.flights: only live state knows the age of column notes"],
    ),
    "age_of_a_kept_column": ("column-age", {"days": 30}, view_of(CAPITAL, EMPTY, since=aged(1)), [], []),
    "row_keys": (
        "key-change",
        {},
        view_of(REKEYED, EMPTY),
        ["row keys carrier, flight → flight: a change of keys needs an approval"],
        [],
    ),
    "row_keys_allowed": ("key-change", {"row_keys": False, "split_points": False}, view_of(REKEYED, EMPTY), [], []),
    "sort_keys_free": ("key-change", {}, view_of(RESORTED, EMPTY), [], []),
    "sort_keys": (
        "key-change",
        {"sort_keys": True},
        view_of(RESORTED, EMPTY),
        ["sort keys delay → none: a change of keys needs an approval"],
        [],
    ),
    "split_points": (
        "key-change",
        {"split_points": True},
        view_of(RESPLIT, EMPTY),
        ["partitions 3 → 2 leaves, no longer at (UA, 100): a change of keys needs an approval"],
        [],
    ),
    "keys_of_a_new_table": ("key-change", {}, view_of(FLIGHTS, EMPTY, live=LiveLake(None)), [], []),
    "destroys_column": (
        "destroys-data",
        {},
        view_of(DROPPED, EMPTY),
        ["drop column notes: what destroys data needs an approval"],
        [],
    ),
    "destroys_table": (
        "destroys-data",
        {},
        view_of(EMPTY),
        ["delete table and its data: what destroys data needs an approval"],
        [],
    ),
    "destroys_nothing": ("destroys-data", {}, view_of(FLIGHTS), [], []),  # the table without rows goes
    "rewrites_rows": (
        "rewrite-size",
        {"rows": 300_000},
        view_of(WIDENED, EMPTY),
        ["widen column delay: int32 → int64: rewrites 336,776 rows, more than 300,000"],
        [],
    ),
    "rewrites_bytes": (
        "rewrite-size",
        {"bytes": 2_000_000, "rows": 10**9},
        view_of(WIDENED, EMPTY),
        ["widen column delay: int32 → int64: rewrites 2.7 MB, more than 2.0 MB"],
        [],
    ),
    "rewrites_little": ("rewrite-size", {"rows": 336_776}, view_of(WIDENED, EMPTY), [], []),
    "rewrites_unknown": (
        "rewrite-size",
        {"rows": 1},
        view_of(WIDENED, EMPTY, since=None, live=without_sizes()),
        [],
        [
            "rewrite-size was not checked for table/air.flights: only live state knows how much is rewritten "
            "(widen column delay: int32 → int64)"
        ],
    ),
    "names": (
        "naming",
        {"databases": "[a-z]+", "tables": "[a-z]+", "columns": "[a-z]{3,}"},
        view_of(BAD_NAME, live=LiveLake(None)),
        [
            "the database's name Air is not [a-z]+",
            "the table's name Bad is not [a-z]+",
            "the name of column id is not [a-z]{3,}",
        ],
        [],
    ),
    "names_are_matched_whole": (
        "naming",
        {"tables": "emp"},
        view_of(FLIGHTS, EMPTY),
        ["the table's name flights is not emp", "the table's name empty is not emp"],
        [],
    ),
    "names_good": ("naming", {"databases": "air", "columns": "[a-z_]+"}, view_of(FLIGHTS, EMPTY), [], []),
    "names_old": ("naming", {"columns": "x", "tables": "x", "new_only": True}, view_of(FLIGHTS, EMPTY), [], []),
    "names_new_table": (
        "naming",
        {"tables": "x", "columns": "x", "new_only": True},
        view_of(FLIGHTS, replace(EMPTY, name="more")),
        ["the table's name more is not x", "the name of column id is not x"],
        [],
    ),
    "names_of_renamed_table": (
        "naming",
        {"tables": "[a-z]+", "columns": "x", "new_only": True},
        view_of(RENAMED, EMPTY),
        ["the table's name Departures is not [a-z]+"],
        [],
    ),
    "names_of_new_columns_and_their_fields": (
        "naming",
        {"columns": "[a-z]+", "new_only": True},
        view_of(ADDED, EMPTY),
        ["the name of column Late is not [a-z]+", "the name of column Late.ByHours is not [a-z]+"],
        [],
    ),
    "names_of_renamed_columns": (
        "naming",
        {"columns": "[a-z]+", "new_only": True},
        view_of(CAPITAL, EMPTY),
        ["the name of column Delay is not [a-z]+"],
        [],
    ),
    "external_host": (
        "external-targets",
        {},
        view_of(FLIGHTS, published(CATALOG, {"type": "glue"}, {"type": "directory"})),
        [NOT_LISTED.format("catalog.example.com")],
        [],
    ),
    "external_of_a_new_table": (
        "external-targets",
        {"allow": ["example.com", "*.example.org"]},
        view_of(FLIGHTS, published(CATALOG), live=LiveLake(None)),
        [NOT_LISTED.format("catalog.example.com")],
        [],
    ),
    "external_elsewhere": (
        "external-targets",
        {"allow": ["catalog.example.com"]},
        view_of(
            FLIGHTS,
            published(
                {"type": "glue", "catalog_id": "123456789012", "database": "theirs"},
                {"type": "directory", "root": "/srv"},
                {"type": "plugin", "name": "json"},
            ),
        ),
        [NOT_LISTED.format(name) for name in ("glue:123456789012/theirs", "directory:/srv", "plugin:json")],
        [],
    ),
    "external_unchecked": (
        "external-targets",
        {"allow": ["*.example.com", "catalog.example.com"]},
        view_of(FLIGHTS, published(CATALOG, raw=True)),
        [NOT_LISTED.format("unchecked:whatever its options name")],
        [],
    ),
    "external_listed": (
        "external-targets",
        {"allow": ["catalog.example.com:443", "plugin:json"]},
        view_of(FLIGHTS, published(CATALOG, {"type": "plugin", "name": "json"})),
        [],
        [],
    ),
    "external_below_a_domain": (
        "external-targets",
        {"allow": ["*.example.com"]},
        view_of(FLIGHTS, published(CATALOG)),
        [],
        [],
    ),
    "owner": ("required-tags", {}, view_of(FLIGHTS, OWNED), ["it has no tag owner"], []),
    "owner_empty": (
        "required-tags",
        {},
        view_of(replace(OWNED, tags={"owner": " "})),
        ["it has no tag owner"],
        [],
    ),
    "tags_by_name": (
        "required-tags",
        {"tags": ["tier", "cost"]},
        view_of(FLIGHTS, replace(OWNED, tags={"tier": "x", "cost": "y"})),
        ["it has no tag cost"],
        [],
    ),
    "tags_by_value": (
        "required-tags",
        {"tags": ["tier"], "values": {"tier": "silver|bronze", "cost": "[0-9]+"}},
        view_of(FLIGHTS, replace(OWNED, tags={"tier": "bronze"})),
        ["its tag tier is 'gold', which is not silver|bronze"],
        [],
    ),
    "tags_of_instances": (
        "required-tags",
        {"tags": ["cost"], "instances": True},
        view_of(replace(OWNED, tags={"cost": "1"})),
        ["it has no tag cost"],
        [],
    ),
    "tags_of_what_is_new": ("required-tags", {"new_only": True}, view_of(FLIGHTS, EMPTY), [], []),
    "descriptions": ("descriptions", {}, view_of(FLIGHTS, EMPTY), ["it has no description"], []),
    "descriptions_of_columns": (
        "descriptions",
        {"tables": False, "columns": True},
        view_of(OWNED),
        ["column id has no description"],
        [],
    ),
    "descriptions_of_new_columns": (
        "descriptions",
        {"columns": True, "new_only": True},
        view_of(ADDED, EMPTY),
        ["column Late has no description"],
        [],
    ),
    "descriptions_there": ("descriptions", {}, view_of(OWNED), [], []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_says_what_breaks_it(name: str, tmp_path: Path) -> None:
    rule, options, plan, expected, notes = CASES[name]
    verdict = verdict_of(tmp_path, policy(rule, **options), plan)
    assert [violation.message for violation in verdict.violations] == expected
    assert list(verdict.notes) == notes
    assert {violation.rule for violation in verdict.violations} <= {rule}
    assert verdict.denied == verdict.violations


def test_every_rule_is_tried_both_ways() -> None:
    for rule in BUILTIN:
        cases = [case for case in CASES.values() if case[0] == rule]
        assert any(expected for _, _, _, expected, _ in cases), rule
        assert any(not expected and not notes for _, _, _, expected, notes in cases), rule


APPROVAL = """
---
kind: Approval
rule: key-change
address: {address}
by: jane@example.org
reason: TICKET-7
until: {until}
"""
UNUSED = "policies/rules.yaml:4:1: the approval of key-change for table/air.{table} {why}: remove it"

# name: (address, until, how the change stands, what is said of it more, remarks)
APPROVALS: dict[str, tuple[str, str, str, str, list[str]]] = {
    "approved": ("table/air.flights", "2026-12-31", "approved", "by jane@example.org until 2026-12-31: TICKET-7", []),
    "on_its_last_day": (
        "table/air.flights",
        "2026-06-30",
        "approved",
        "by jane@example.org until 2026-06-30: TICKET-7",
        [],
    ),
    "ended": (
        "table/air.flights",
        "2026-06-29",
        "mandatory",
        " (the approval by jane@example.org ended on 2026-06-29)",
        [],
    ),
    "of_another": (
        "table/air.empty",
        "2026-12-31",
        "mandatory",
        "",
        [UNUSED.format(table="empty", why="is not used")],
    ),
    "of_another_and_ended": (
        "table/air.empty",
        "2026-01-01",
        "mandatory",
        "",
        [UNUSED.format(table="empty", why="ended on 2026-01-01")],
    ),
}


@pytest.mark.parametrize("name", APPROVALS)
def test_approvals_hold_for_their_address_until_they_end(name: str, tmp_path: Path) -> None:
    address, until, status, more, notes = APPROVALS[name]
    text = "kind: Policy\nrule: key-change" + APPROVAL.format(address=address, until=until)
    verdict = verdict_of(tmp_path, text, view_of(REKEYED, EMPTY))
    [violation] = verdict.violations
    assert violation.status == status
    assert (violation.approved or violation.message).endswith(more)
    assert list(verdict.notes) == notes
    assert bool(verdict.denied) == (status == "mandatory")


def test_an_approval_holds_for_its_stacks(tmp_path: Path) -> None:
    text = "kind: Policy\nrule: key-change" + APPROVAL.format(address="table/air.flights", until="2026-12-31")
    text += "stacks: [pr*]\n"
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "rules.yaml").write_text(text, encoding="utf-8")
    for stack, status in (("prod", "approved"), ("dev", "mandatory")):
        verdict = verdict_in(tmp_path, view_of(REKEYED, EMPTY, stack=stack))
        assert ([each.status for each in verdict.violations], verdict.notes) == ([status], ())


def test_an_approval_of_a_column_is_of_no_other(tmp_path: Path) -> None:
    dropped = replace(FLIGHTS, columns=tuple(c for c in FLIGHTS.columns if c.name not in ("notes", "stops")))
    text = policy("destroys-data", name="no-loss") + APPROVAL.format(address="table/air.flights", until="2026-12-31")
    text = text.replace("rule: key-change", "rule: no-loss\ncolumn: notes")
    verdict = verdict_of(tmp_path, text, view_of(dropped, EMPTY))
    assert [(each.column, each.status) for each in verdict.violations] == [
        ("stops", "mandatory"),
        ("notes", "approved"),
    ]


# name: (options, stack, how the two tables stand)
WHERE: dict[str, tuple[dict[str, object], str, list[str]]] = {
    "everywhere": ({}, "dev", ["mandatory", "mandatory"]),
    "advisory": ({"enforcement": "advisory"}, "dev", ["advisory", "advisory"]),
    "disabled": ({"enforcement": "disabled"}, "dev", []),
    "this_stack": ({"stacks": ["pr*"]}, "prod", ["mandatory", "mandatory"]),
    "another_stack": ({"stacks": ["pr*"]}, "dev", []),
    "this_table": ({"addresses": ["table/air.e*"]}, "dev", ["mandatory"]),
    "no_table": ({"addresses": ["table/rail.*"]}, "dev", []),
}


@pytest.mark.parametrize("name", WHERE)
def test_a_rule_holds_where_it_says(name: str, tmp_path: Path) -> None:
    options, stack, service_statuses = WHERE[name]
    verdict = verdict_of(tmp_path, policy("required-tags", **options), view_of(FLIGHTS, EMPTY, stack=stack))
    assert [violation.status for violation in verdict.violations] == service_statuses
    assert len(verdict.rules) == (name != "another_stack")


def test_violations_name_the_line(tmp_path: Path) -> None:
    from deployer.errors import Position

    spec = replace(EMPTY, sources={"": Position("specs/empty.yaml", 3), "columns.id": Position("specs/empty.yaml", 7)})
    text = policy("naming", tables="x", columns="x")
    verdict = verdict_of(tmp_path, text, view_of(spec))
    assert [str(violation.at) for violation in verdict.violations] == ["specs/empty.yaml:3:1", "specs/empty.yaml:7:1"]
