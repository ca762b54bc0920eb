"""Which live table a declared one is: by Pulumi's state, by its name or by its former name, as the engine finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from deployer.live.model import LiveLake, LiveTable, Unreadable
from deployer.plan import make_plan
from deployer.plan.model import Plan
from deployer.plan.render.changes import describe
from tests.plan.lakes import EMPTY, INSTANCE, OWNER, graph

A, B, C = (replace(EMPTY, name=name) for name in "abc")


def lake(live: Mapping[str, str], applied: Mapping[str, str], owners: Mapping[str, str] | None = None) -> LiveLake:
    """`live` are names of tables by id, `applied` the names by which Pulumi's state has ids."""
    tables = [
        LiveTable(replace(EMPTY, name=name), id_, f"air/{id_}.lance", (owners or {}).get(id_, OWNER))
        for id_, name in live.items()
    ]
    found = LiveLake(INSTANCE, {table.spec.address: table for table in tables})
    return found.with_applied({f"table/air.{name}": id_ for name, id_ in applied.items()})


def lines(plan: Plan) -> list[str]:
    found = []
    for each in plan.resources:
        for change in each.changes:
            refused = f" refused: {change.refused}" if change.refused else ""
            found.append(f"{each.action} {each.address}: {describe(change.change)}{refused}")
    return found


BACK = "update table/air.a: rename table air.b → air.a"
CREATE_A = "create table/air.a: create table: 1 column, row keys id, 1 leaf"
CREATE_B = CREATE_A.replace("air.a", "air.b")
A_FROM_B = replace(A, renamed_from="b")
# name: (names of live tables by id, ids by name in Pulumi's state, declared tables, lines of the plan)
CASES = {
    "as_applied": ({"1": "a"}, {"a": "1"}, [A], []),
    "renamed_by_hand": ({"1": "b"}, {"a": "1"}, [A], [BACK]),
    "renamed_by_hand_and_no_more_declared": (
        {"1": "b"},
        {"a": "1"},
        [],
        ["delete table/air.a: delete table, which is air.b now, and its data"],
    ),
    "deleted_by_hand": ({}, {"a": "1"}, [A], [CREATE_A]),
    "deleted_and_made_again_by_hand": ({"2": "a"}, {"a": "1"}, [A], []),
    "not_in_pulumis_state": ({"1": "a"}, {}, [A], []),
    "renamed_by_the_specs": ({"1": "b"}, {"b": "1"}, [A_FROM_B], [BACK]),
    "renamed_by_the_specs_and_not_in_pulumis_state": ({"1": "b"}, {}, [A_FROM_B], [BACK]),
    "renamed_by_the_specs_and_by_hand": (
        {"1": "c"},
        {"b": "1"},
        [A_FROM_B],
        ["update table/air.a: rename table air.c → air.a"],
    ),
    "renamed_from_that_was_applied_before": (
        {"1": "a", "2": "b"},
        {"a": "1", "b": "2"},
        [A_FROM_B],
        [
            "delete table/air.b: delete table and its data",
        ],
    ),
    "another_table_has_the_name_and_goes_first": (
        {"1": "b", "2": "a"},
        {"a": "1"},
        [A],
        [BACK, "delete table/air.a: delete table and its data"],
    ),
    "a_table_of_another_stack_has_the_name": (
        {"1": "b", "others": "a"},
        {"a": "1"},
        [A],
        [f"{BACK} refused: another table has the name air.a: rename that table, `deployer table rename air.a NAME`"],
    ),
    "names_that_moved_on": (
        {"1": "b", "2": "c"},
        {"a": "1", "b": "2"},
        [A, B],
        [
            BACK,
            "update table/air.b: rename table air.c → air.b refused: table/air.a has the name air.b now: rename it "
            "back first, `deployer table rename air.b air.a`",
        ],
    ),
    "names_that_were_swapped": (
        {"1": "b", "2": "a"},
        {"a": "1", "b": "2"},
        [A, B],
        [
            f"{BACK} refused: table/air.b has the name air.a now: rename it back first, "
            "`deployer table rename air.a air.b`",
            "update table/air.b: rename table air.a → air.b refused: table/air.a has the name air.b now: rename it "
            "back first, `deployer table rename air.b air.a`",
        ],
    ),
    "a_new_table_of_a_name_that_another_got_by_hand": (
        {"1": "b"},
        {"a": "1"},
        [A, B],
        [
            BACK,
            f"{CREATE_B} refused: table/air.a has the name air.b now: rename it back first, "
            "`deployer table rename air.b air.a`",
        ],
    ),
    "a_name_that_the_specs_follow_without_saying_so": (
        {"1": "b"},
        {"a": "1"},
        [B],
        [
            f"{CREATE_B} refused: the table air.b is table/air.a in Pulumi's state: write `renamed_from: air.a` to "
            "keep it under this name, else give it another one, `deployer table rename air.b NAME`",
            "delete table/air.a: delete table, which is air.b now, and its data",
        ],
    ),
    "a_name_that_is_free_only_at_the_end": (
        {"1": "c", "2": "a"},
        {"a": "1", "b": "2"},
        [A],
        [
            "update table/air.a: rename table air.c → air.a refused: table/air.b, which is deleted last, has the name "
            "air.a now: rename it first, `deployer table rename air.a NAME`",
            "delete table/air.b: delete table, which is air.a now, and its data",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_table_is_the_one_that_the_engine_finds(case: str) -> None:
    live, applied, declared, expected = CASES[case]
    found = lake(live, applied, {"others": "lakes/other"})
    assert lines(make_plan("demo", graph(*declared), found, owner=OWNER)) == expected


@pytest.mark.parametrize("allowed", ["table/air.a", "table/air.b"])
def test_what_is_destroyed_may_be_allowed_by_either_name(allowed: str) -> None:
    live = lake({"1": "b"}, {"a": "1"})
    rows = replace(live.tables["table/air.b"], statistics=replace(live.tables["table/air.b"].statistics, rows=3))
    live = replace(live, tables={"table/air.b": rows})
    assert make_plan("demo", graph(), live, owner=OWNER).refused
    assert not make_plan("demo", graph(), live, owner=OWNER, allow_destroy=[allowed]).refused


def test_a_renamed_table_that_cannot_be_read_is_left_alone() -> None:
    broken = Unreadable("table/air.b", "1", "its log is damaged")
    live = LiveLake(INSTANCE, unreadable={broken.address: broken}).with_applied({A.address: "1"})
    plan = make_plan("demo", graph(A), live, owner=OWNER)
    assert (lines(plan), plan.unreadable) == ([], (broken,))
