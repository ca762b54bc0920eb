"""The stages of a plan: their order for named cases; they hold each change once, in the order that is shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.plan import make_plan
from deployer.plan.diff.lakes import diff_tables
from deployer.plan.stages import stages
from deployer.specs.model import Storage, TableSpec
from tests.plan.edits import EDITS, MORE, TABLE, Edit
from tests.plan.lakes import INSTANCE, OWNER, graph

PLAIN = replace(TABLE, indexes=())
UNIQUE = replace(PLAIN, unique=True)
KEYS, SORT, POINTS = ("flight", "carrier"), ("flight",), ((7,),)
Staged = list[tuple[str, list[str]]]


def wider(spec: TableSpec, name: str) -> TableSpec:
    edits = {"flight": MORE["a row key widened"][0], "late": MORE["a sort key widened"][0]}
    return edits[name].of(spec)


def edited(spec: TableSpec, *edits: Edit) -> TableSpec:
    for edit in edits:
        spec = edit.of(spec)
    return spec


#: What is live, what is declared, and the stages with the kinds of their changes.
CASES: dict[str, tuple[TableSpec, TableSpec, Staged]] = {
    "nothing": (TABLE, TABLE, []),
    "a property of a table with indexes": (
        TABLE,
        replace(TABLE, online=False),
        [("BuildIndexes", []), ("SetProperties", ["SetOnline"])],
    ),
    "a property of a table without indexes": (
        PLAIN,
        replace(PLAIN, online=False),
        [("SetProperties", ["SetOnline"])],
    ),
    "one rewrite for keys, sort keys, split points and storage": (
        PLAIN,
        replace(PLAIN, row_keys=KEYS, sort_keys=SORT, split_points=POINTS, storage=Storage(data_storage_version="2.2")),
        [("RewriteTable", ["ChangeRowKeys", "ChangeSortKeys", "ChangeSplitPoints", "ChangeStorage"])],
    ),
    "a row key that stays gets its wider type by the rewrite": (
        PLAIN,
        replace(wider(PLAIN, "flight"), sort_keys=()),
        [("RewriteTable", ["WidenColumn", "ChangeSortKeys"])],
    ),
    "a column may not be null before it becomes a row key": (
        PLAIN,
        edited(PLAIN, *MORE["a column forbidden to be null that becomes a row key"]),
        [("EvolveSchema", ["TightenNullability"]), ("RewriteTable", ["ChangeRowKeys", "ChangeSortKeys"])],
    ),
    "a former row key changes its type after the rewrite": (
        PLAIN,
        replace(wider(PLAIN, "flight"), row_keys=("carrier",)),
        [("RewriteTable", ["ChangeRowKeys"]), ("EvolveFormerKeys", ["WidenColumn"])],
    ),
    "a former sort key changes its type after the rewrite": (
        PLAIN,
        replace(wider(PLAIN, "late"), sort_keys=()),
        [("RewriteTable", ["ChangeSortKeys"]), ("EvolveFormerKeys", ["WidenColumn"])],
    ),
    "a sort key that stays is widened in place": (
        PLAIN,
        wider(PLAIN, "late"),
        [("EvolveSchema", ["WidenColumn"])],
    ),
    "keys need not be unique before the rewrite": (
        UNIQUE,
        replace(wider(PLAIN, "flight"), row_keys=KEYS),
        [("DropUnique", ["SetUnique"]), ("RewriteTable", ["WidenColumn", "ChangeRowKeys"])],
    ),
    "keys are unique, and leaves limited, after the rewrite": (
        PLAIN,
        replace(UNIQUE, row_keys=KEYS, sort_keys=SORT, max_rows_per_leaf=9),
        [
            ("RewriteTable", ["ChangeRowKeys", "ChangeSortKeys"]),
            ("SetConstraints", ["SetUnique", "ChangeLeafLimit"]),
        ],
    ),
    "everything": (
        TABLE,
        replace(
            edited(
                TABLE,
                *MORE["a new row key in the place of a dropped one"],
                *(EDITS[kind][0] for kind in EDITS if kind.__name__ in ("DropIndex", "DeleteService", "RenameTable")),
            ),
            sort_keys=(),
            unique=True,
            description="",
            tags={},
        ),
        [
            ("RenameTable", ["RenameTable"]),
            ("DropIndexes", ["DropIndex"]),
            ("EvolveSchema", ["AddColumn"]),
            ("RewriteTable", ["ChangeRowKeys", "ChangeSortKeys"]),
            ("SetConstraints", ["SetUnique"]),
            ("DropColumns", ["DropColumn"]),
            ("BuildIndexes", []),
            ("ChangeServices", ["DeleteService"]),
            ("SetProperties", ["ChangeDescription", "ChangeTags"]),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_changes_are_applied_in_these_stages(name: str) -> None:
    live, desired, expected = CASES[name]
    found = stages(diff_tables(live, desired), desired)
    assert [(type(stage).__name__, [change.kind for change in stage.changes]) for stage in found] == expected


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("kind", EDITS, ids=lambda kind: kind.__name__)
def test_a_plan_shows_the_changes_of_the_stages_in_their_order(kind: type) -> None:
    for both in combinations([EDITS[kind][0], *(edits[0] for edits in EDITS.values())], 2):
        desired = edited(TABLE, *both)
        found = stages(diff_tables(TABLE, desired), desired)
        live = LiveLake(INSTANCE, {TABLE.address: LiveTable(TABLE, "f" * 32, "air/f.lance", OWNER, TableStatistics(9))})
        plan = make_plan("demo", graph(desired), live, owner=OWNER)
        assert [each.change for each in plan.changes] == [change for stage in found for change in stage.changes]


def test_the_stages_are_the_same_whatever_order_the_changes_have() -> None:
    changes = diff_tables(*CASES["everything"][:2])
    desired = CASES["everything"][1]
    again = stages(reversed(changes), desired)
    assert [(type(stage), set(map(repr, stage.changes))) for stage in again] == [
        (type(stage), set(map(repr, stage.changes))) for stage in stages(changes, desired)
    ]
