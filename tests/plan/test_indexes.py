"""Changes of indexes: found, and shown as their golden files say."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace

import pytest
from rich.console import Console

from deployer.errors import Position
from deployer.plan import diff, make_plan
from deployer.plan.assess.risk import Risk
from deployer.plan.changes import CreateIndex, DropIndex, IndexChange, RebuildIndex, RenameColumn, RenameIndex
from deployer.plan.diff.indexes import diff_indexes
from deployer.plan.planning.cause import cause
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.render.terminal import plan_as_tree
from deployer.provider.resources.property_paths import property_paths
from deployer.specs.model import IndexSpec, TableSpec
from deployer.specs.types.types import Column, FixedSizeList, Scalar, Struct
from tests.plan.lakes import FLIGHTS, LIVE, OWNER, graph
from tests.plan.test_diff import check

CARRIER = IndexSpec("carrier_bitmap", ("carrier",), "bitmap")
WORDS = IndexSpec("notes", ("gate.hall",), "inverted", {"stem": False})
VECTORS = IndexSpec("vectors", ("embedding",), "ivf_pq", {"num_partitions": 4, "num_sub_vectors": 8})
BEFORE = replace(
    FLIGHTS,
    columns=(*FLIGHTS.columns, Column("embedding", FixedSizeList(Column("item", Scalar("float32")), 96))),
    indexes=(CARRIER, WORDS, VECTORS),
)
DELAY = IndexSpec("delay_btree", ("delay",), "btree")

CASES: Mapping[str, TableSpec] = {
    "nothing": BEFORE,
    "create": replace(BEFORE, indexes=(CARRIER, DELAY, WORDS, VECTORS)),
    "drop": replace(BEFORE, indexes=(CARRIER, VECTORS)),
    "parameters": replace(
        BEFORE,
        indexes=(
            CARRIER,
            replace(WORDS, parameters={"custom_stop_words": ["gate", "hall"], "with_position": True}),
            replace(VECTORS, parameters={"metric": "cosine", "num_partitions": 16, "num_sub_vectors": 8}),
        ),
    ),
    "kind": replace(BEFORE, indexes=(replace(CARRIER, kind="btree"), WORDS, VECTORS)),
    "column": replace(BEFORE, indexes=(replace(CARRIER, columns=("flight",)), WORDS, VECTORS)),
    "rename": replace(BEFORE, indexes=(CARRIER, replace(WORDS, name="texts"), VECTORS)),
}


def planned(after: TableSpec) -> list[IndexChange]:
    return [change for change in diff(BEFORE, after) if isinstance(change, IndexChange)]


@pytest.mark.parametrize("name", CASES)
def test_changed_indexes_are_planned_as_their_golden_file_says(name: str, update_golden: bool) -> None:
    live = replace(LIVE, tables={FLIGHTS.address: replace(LIVE.tables[FLIGHTS.address], spec=BEFORE)})
    plan = make_plan("demo", graph(CASES[name]), live, owner=OWNER)
    console = Console(width=400, no_color=True, highlight=False, record=True, file=io.StringIO())
    console.print(plan_as_tree(plan))
    text = "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"
    check(f"indexes_{name}", text, update_golden)
    assert not plan.refused
    assert {change.assessment.risk for change in plan.changes} <= {Risk.SAFE}


def test_an_index_follows_its_renamed_column() -> None:
    hall = Struct((Column("lounge", Scalar("string"), renamed_from="hall"), Column("number", Scalar("int16"))))
    renamed = [
        replace(column, name="airline", renamed_from="carrier")
        if column.name == "carrier"
        else Column("door", hall, renamed_from="gate")
        if column.name == "gate"
        else column
        for column in BEFORE.columns
    ]
    after = replace(
        BEFORE,
        columns=tuple(renamed),
        row_keys=("airline", "flight"),
        indexes=(replace(CARRIER, columns=("airline",)), replace(WORDS, columns=("door.lounge",)), VECTORS),
    )
    assert {type(change) for change in diff(BEFORE, after)} == {RenameColumn}


def test_an_index_that_is_named_after_its_column_is_renamed_with_it() -> None:
    columns = [
        replace(column, name="airline", renamed_from="carrier") if column.name == "carrier" else column
        for column in BEFORE.columns
    ]
    airline = IndexSpec("airline_bitmap", ("airline",), "bitmap")
    after = replace(BEFORE, columns=tuple(columns), row_keys=("airline", "flight"), indexes=(airline, WORDS, VECTORS))
    assert diff(BEFORE, after) == (
        RenameColumn(BEFORE.address, ("carrier",), "airline"),
        RenameIndex(BEFORE.address, replace(CARRIER, columns=("airline",)), airline),
    )


A, B, C = (IndexSpec(f"{name}_btree", (name,), "btree") for name in ("a", "b", "c"))
RENAMES: Mapping[str, tuple[list[IndexSpec], list[IndexSpec], list[str]]] = {
    "each frees the name of the next": (
        [replace(A, columns=("b",)), replace(B, columns=("c",))],
        [B, C],
        ["rename b_btree c_btree", "rename a_btree b_btree"],
    ),
    "another takes the old name": (
        [replace(A, columns=("b",))],
        [A, B],
        ["rename a_btree b_btree", "create a_btree"],
    ),
    "a swap of names": (
        [A, B],
        [replace(B, columns=("a",)), replace(A, columns=("b",))],
        ["rebuild b_btree", "rebuild a_btree"],
    ),
    "of two of the same the one that is not declared": (
        [A, replace(A, name="x")],
        [A, replace(A, name="y")],
        ["rename x y"],
    ),
    "other parameters": (
        [replace(WORDS, name="x")],
        [replace(WORDS, name="y", parameters={})],
        ["drop x", "create y"],
    ),
}


@pytest.mark.parametrize("case", RENAMES)
def test_an_index_that_has_only_another_name_is_renamed(case: str) -> None:
    live, desired, expected = RENAMES[case]
    told = []
    for change in diff_indexes("table/air.flights", live, desired):
        match change:
            case CreateIndex(index=index):
                told.append(f"create {index.name}")
            case DropIndex(index=index):
                told.append(f"drop {index.name}")
            case RebuildIndex(after=after):
                told.append(f"rebuild {after.name}")
            case RenameIndex(before=before, after=after):
                told.append(f"rename {before.name} {after.name}")
    assert told == expected


def test_indexes_are_dropped_before_columns_and_built_after_them() -> None:
    after = replace(
        BEFORE,
        columns=(*(column for column in BEFORE.columns if column.name != "gate"), Column("door", Scalar("string"))),
        indexes=(CARRIER, IndexSpec("door_btree", ("door",), "btree"), VECTORS),
    )
    kinds = [change.kind for change in diff(BEFORE, after)]
    assert (kinds[0], kinds[-1]) == ("DropIndex", "CreateIndex")


@pytest.mark.parametrize(
    ("case", "line"), [("create", 20), ("drop", 10), ("parameters", 32), ("kind", 12), ("column", 13), ("rename", 40)]
)
def test_a_change_of_an_index_is_caused_by_its_own_line(case: str, line: int) -> None:
    sources = {
        "": 1,
        "indexes": 10,
        "indexes.carrier_bitmap": 11,
        "indexes.carrier_bitmap.kind": 12,
        "indexes.carrier_bitmap.columns": 13,
        "indexes.delay_btree": 20,
        "indexes.vectors": 30,
        "indexes.vectors.num_partitions": 31,
        "indexes.vectors.metric": 32,
        "indexes.texts": 39,
        "indexes.texts.name": 40,
    }
    after = replace(CASES[case], sources={path: Position("t.yaml", number, 1) for path, number in sources.items()})
    at = cause(planned(after)[-1], after)
    assert at is not None
    assert at.line == line


@pytest.mark.parametrize("case", [name for name in CASES if name != "nothing"])
def test_a_change_of_an_index_has_a_property_path_and_a_json_form(case: str) -> None:
    changes = planned(CASES[case])
    assert property_paths(changes, {"indexes": []}, {"indexes": []}) == {"indexes": "update"}
    live = replace(LIVE, tables={FLIGHTS.address: replace(LIVE.tables[FLIGHTS.address], spec=BEFORE)})
    document = plan_as_json(make_plan("demo", graph(CASES[case]), live, owner=OWNER))
    details = document["resources"][0]["changes"][0]["details"]
    assert all({"name", "columns", "kind"} <= index.keys() for index in details.values())
