"""Two changes of one table at once: for each pair of kinds the specs, and the plan in the order of its application.

A golden file for each kind holds its pairs with the kinds from it on: the edits, then what changes. A kind without
edits in tests/plan/edits.py, or one that two specs cannot differ by, fails here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from deployer.errors import InvalidSpecs
from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.plan import changes as c
from deployer.plan import make_plan
from deployer.plan.diff.lakes import diff
from deployer.plan.render.changes import describe
from deployer.specs.editing.write import lake_to_yaml
from deployer.specs.loading.lake import load_lake
from deployer.specs.model import Lake, TableSpec
from tests.plan.edits import EDITS, MORE, TABLE, Edit
from tests.plan.lakes import INSTANCE, OWNER, graph
from tests.plan.test_diff import check

LIVE = LiveLake(
    INSTANCE, {TABLE.address: LiveTable(TABLE, "f" * 32, "air/f.lance", OWNER, TableStatistics(1000, 9000))}
)
KINDS = list(EDITS)
#: Two changes of these kinds cannot be made of one table: there is one value, and it changes once.
ONCE = {
    c.RenameTable,
    c.ChangeRowKeys,
    c.ChangeSortKeys,
    c.ChangeSplitPoints,
    c.ChangeLeafLimit,
    c.ChangeRetainedChanges,
    c.ChangeRetention,
    c.ChangeHolds,
    c.ChangeStorage,
    c.SetUnique,
    c.ChangeEmbedding,
    c.SetOnline,
    c.SetDeletionProtection,
    c.ChangeDescription,
    c.ChangeTags,
}


def edited(edits: Iterable[Edit]) -> TableSpec:
    spec = TABLE
    for edit in edits:
        spec = edit.of(spec)
    return spec


def is_valid(spec: TableSpec, folder: Path) -> bool:
    """Whether `deployer validate` takes it."""
    return {*spec.row_keys, *spec.sort_keys} <= {column.name for column in spec.columns} and _loads(
        lake_to_yaml(Lake(INSTANCE, (spec,))), folder
    )


@cache
def _loads(text: str, folder: Path) -> bool:
    (folder / "lake.yaml").write_text(text, encoding="utf-8")
    try:
        load_lake(folder, Path("lake.yaml"))
    except InvalidSpecs:
        return False
    return True


def kinds_of(spec: TableSpec) -> list[type]:
    return [type(change) for change in diff(TABLE, spec)]


def pair(first: type, second: type, folder: Path) -> tuple[Edit, Edit] | None:
    """The first edits of both kinds that make a valid spec which differs by exactly these."""
    choices = product(range(len(EDITS[first])), range(len(EDITS[second])))
    for i, j in sorted(choices, key=sum):
        both = EDITS[first][i], EDITS[second][j]
        if first is second and i >= j:
            continue
        for order in (both, both[::-1]):  # an edit may need what the other makes
            spec = edited(order)
            if sorted(kinds_of(spec), key=repr) == sorted((first, second), key=repr) and is_valid(spec, folder):
                return order
    return None


def planned(spec: TableSpec) -> Iterator[str]:
    """Each change on a line: its risk, itself, and why it is refused."""
    plan = make_plan("demo", graph(spec), LIVE, owner=OWNER)
    for each in plan.changes:
        yield f"  {each.assessment.risk.value:<8} {describe(each.change)}"
        if each.refused:
            yield f"           refused: {each.refused}"


def section(edits: Iterable[Edit]) -> str:
    edits = tuple(edits)
    return "\n".join([" + ".join(edit.name for edit in edits), *planned(edited(edits))])


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("first", KINDS, ids=lambda kind: kind.__name__)
def test_two_changes_of_a_table_are_planned_as_their_golden_file_says(
    first: type, tmp_path: Path, update_golden: bool
) -> None:
    sections = []
    for second in KINDS[KINDS.index(first) :]:
        if first is second and first in ONCE:
            continue
        edits = pair(first, second, tmp_path)
        assert edits is not None, f"no edits make a {first.__name__} and a {second.__name__}"
        sections.append(section(edits))
    check(f"pairs/{first.__name__}", "\n\n".join(sections) + "\n", update_golden)


def test_changes_that_could_go_wrong_together_are_planned_as_their_golden_file_says(
    tmp_path: Path, update_golden: bool
) -> None:
    for name, edits in MORE.items():
        assert is_valid(edited(edits), tmp_path), name
    text = "\n\n".join(f"# {name}\n{section(edits)}" for name, edits in MORE.items())
    check("pairs/more", text + "\n", update_golden)


def test_every_kind_of_change_of_a_table_is_paired() -> None:
    alone = {c.CreateTable, c.DeleteTable}  # nothing else happens to a table that is not there
    of_views = {c.ChangeViewQuery, c.ChangeMaxStaleness}  # tests/views/spec/test_plans.py
    assert {*EDITS, *alone, *of_views} == set(get_args(c.TableChange))
    for kind, edits in EDITS.items():
        for edit in edits:
            assert kind in kinds_of(edit.of(TABLE)), edit.name
