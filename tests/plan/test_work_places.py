"""Where a plan says that indexes of large tables are built."""

from __future__ import annotations

import pytest

from deployer.live.model import TableStatistics
from deployer.plan.assess.risk import Assessment, Risk
from deployer.plan.changes import Change, CreateIndex, DropIndex, RebuildIndex, RenameIndex
from deployer.plan.model import Plan, PlannedChange, ResourcePlan
from deployer.plan.planning.work_places import SMALL_ROWS, builds_large_indexes, with_build_place
from deployer.specs.model import IndexSpec

TABLE, TREE = "table/air.flights", IndexSpec("id_btree", ("id",), "btree")
CASES: dict[str, tuple[Change, int, bool]] = {
    "a large table": (CreateIndex(TABLE, TREE), SMALL_ROWS + 1, True),
    "a small table": (CreateIndex(TABLE, TREE), SMALL_ROWS, False),
    "another kind": (RebuildIndex(TABLE, TREE, TREE), SMALL_ROWS + 1, True),
    "another name": (RenameIndex(TABLE, TREE, TREE), SMALL_ROWS + 1, False),
    "an index that goes": (DropIndex(TABLE, TREE), SMALL_ROWS + 1, False),
}


@pytest.mark.parametrize(("change", "rows", "is_placed"), CASES.values(), ids=CASES.keys())
def test_only_builds_of_large_tables_have_a_place(change: Change, rows: int, is_placed: bool) -> None:
    planned = PlannedChange(change, Assessment(Risk.SAFE, why="why"), None, None)
    plan = Plan("demo", (ResourcePlan(TABLE, "update", (planned,), TableStatistics(rows=rows)),))
    assert builds_large_indexes(plan) is is_placed
    [[placed]] = [each.changes for each in with_build_place(plan, "on cluster big (emr)").resources]
    assert placed.assessment.why == ("why, on cluster big (emr)" if is_placed else "why")
