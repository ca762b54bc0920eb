"""Variables and overlays: one set of files, a lake for each stack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from deployer.errors import InvalidSpecs
from deployer.specs import load_lake
from deployer.specs.model import Lake
from deployer.specs.types.types import format_type

INSTANCE = "kind: Instance\nname: demo\nroot: ${root}\ntags: {env: ${{env}}, note: 'costs $${5}'}\n".replace(
    "${{env}}", '"${env}"'
)
VARIABLES = """\
---
kind: Variables
variables:
  root: { default: lakes/demo }
  env: { type: string, default: dev }
  rows: { type: integer, default: 1000 }
  protect: { type: boolean, default: false }
stacks:
  prod: { root: s3://our-lakes/demo, env: production, protect: true }
"""
TABLE = """\
---
kind: Table
database: air
name: flights
description: Flights of ${env}.
columns:
  - { name: id, type: int64, nullable: false }
  - { name: delay, type: int32 }
row_keys: [id]
deletion_protection: ${protect}
storage: { max_rows_per_file: "${rows}" }
tags: { owner: ops, team: blue }
"""
OVERLAY = """\
---
kind: Overlay
stack: [prod, staging]
target: table/air.flights
set:
  columns:
    - { name: delay, description: In minutes. }
    - { name: gate, type: string }
  tags: { owner: night, team: null }
  row_keys: [id]
  partitions: { split_points: [10] }
"""


def load(folder: Path, text: str, stack: str | None = None, values: Mapping[str, str] | None = None) -> Lake:
    folder.mkdir(exist_ok=True)
    (folder / "lake.yaml").write_text(text, encoding="utf-8")
    return load_lake(folder, folder / "lake.yaml", stack, values)


def test_defaults_hold_where_a_stack_sets_nothing(tmp_path: Path) -> None:
    lake = load(tmp_path, INSTANCE + VARIABLES + TABLE + OVERLAY, "dev")
    flights = lake.tables[0]
    assert (lake.instance.root, lake.instance.tags) == ("lakes/demo", {"env": "dev", "note": "costs ${5}"})
    assert (flights.description, flights.deletion_protection) == ("Flights of dev.", False)
    assert flights.storage.max_rows_per_file == 1000
    assert [column.name for column in flights.columns] == ["id", "delay"]
    assert lake == load(tmp_path, INSTANCE + VARIABLES + TABLE + OVERLAY)


def test_a_stack_has_its_values_and_its_overlays(tmp_path: Path) -> None:
    lake = load(tmp_path, INSTANCE + VARIABLES + TABLE + OVERLAY, "prod")
    flights = lake.tables[0]
    assert lake.instance.root == "s3://our-lakes/demo"
    assert flights.deletion_protection
    assert [(column.name, column.description) for column in flights.columns] == [
        ("id", ""),
        ("delay", "In minutes."),
        ("gate", ""),
    ]
    assert flights.tags == {"owner": "night"}
    assert flights.split_points == ((10,),)


def test_configuration_goes_before_the_file(tmp_path: Path) -> None:
    values = {"env": "test", "rows": "7", "protect": "false", "specs": "specs"}
    lake = load(tmp_path, INSTANCE + VARIABLES + TABLE, "prod", values)
    assert lake.instance.tags["env"] == "test"
    assert lake.tables[0].storage.max_rows_per_file == 7
    assert not lake.tables[0].deletion_protection


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(("type: string }", "type: strng }"), "lake.yaml:33:27: unknown type `strng`", id="type"),
        pytest.param(("split_points: [10]", "split_points: [ten]"), "lake.yaml:36:32: `ten` is not", id="split-point"),
        pytest.param(("row_keys: [id]\n  part", "row_keys: [di]\n  part"), "lake.yaml:35:14: no column `di`", id="key"),
        pytest.param(("team: null }", "team: 5 }"), "lake.yaml:34:31: `team` is the number 5", id="tag"),
        pytest.param(("set:\n", "set:\n  onlin: false\n"), "lake.yaml:31:3: unknown field `onlin`", id="field"),
    ],
)
def test_a_problem_in_an_overlaid_value_points_at_the_overlay(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    text = INSTANCE + VARIABLES + TABLE + OVERLAY.replace(*change)
    load(tmp_path, text, "dev")
    with pytest.raises(InvalidSpecs) as caught:
        load(tmp_path, text, "prod")
    assert [str(problem)[: len(said)] for problem in caught.value.problems] == [said]


def test_places_lead_to_the_overlay(tmp_path: Path) -> None:
    flights = load(tmp_path, INSTANCE + VARIABLES + TABLE + OVERLAY, "prod").tables[0]
    assert flights.sources["columns.delay.description"].line == 32
    assert flights.sources["columns.delay.type"].line == 21
    assert flights.sources["partitions"].line == 36


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"rows": "many"}, "Pulumi.dev.yaml:1:1: variable `deployer:rows` is `many`", id="type"),
        pytest.param({"rots": "x"}, "Pulumi.dev.yaml:1:1: deployer:rots sets no variable", id="misspelt"),
    ],
)
def test_configuration_that_does_not_fit_is_a_problem(tmp_path: Path, values: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSpecs) as caught:
        load(tmp_path, INSTANCE + VARIABLES, "dev", values)
    assert str(caught.value.problems[0]).startswith(said)


def test_an_include_may_be_for_one_stack(tmp_path: Path) -> None:
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "audit.yaml").write_text(
        "kind: Table\ndatabase: air\nname: audit\ncolumns: [{name: id, type: int64}]\n", encoding="utf-8"
    )
    text = INSTANCE + VARIABLES + "---\nstack: prod\ninclude: [prod/*.yaml]\n"
    assert [table.name for table in load(tmp_path, text, "prod").tables] == ["audit"]
    assert not load(tmp_path, text, "dev").tables


def test_text_that_only_looks_like_code_is_not_evaluated(tmp_path: Path) -> None:
    value = "$(touch x) {{ 1 + 1 }} !!python/object"
    text = INSTANCE + VARIABLES.replace("env: { type: string, default: dev }", f'env: {{ default: "{value}" }}')
    assert load(tmp_path, text).instance.tags["env"] == value


INDEXED = TABLE + "indexes:\n  - {kind: btree, columns: [delay]}\n  - {name: own, kind: bitmap, columns: [id]}\n"
CLUSTER = "clusters:\n  - {name: small, kind: local}\n  - {name: large, kind: local}\n"


def removal(target: str, text: str) -> str:
    return f"---\nkind: Overlay\nstack: prod\ntarget: {target}\nset:\n  {text}\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("columns: [{name: delay, remove: true}]\n  indexes: null", (["id"], []), id="column"),
        pytest.param(
            "columns: [{name: delay, remove: true}, {name: late, type: int32}]\n  indexes: null",
            (["id", "late"], []),
            id="and-another",
        ),
        pytest.param("indexes: [{name: own, remove: true}]", (["id", "delay"], ["delay_btree"]), id="index"),
        pytest.param(
            "indexes: [{name: delay_btree, remove: true}]", (["id", "delay"], ["own"]), id="index-without-a-name"
        ),
        pytest.param(
            "indexes: [{name: delay_btree, remove: true}, {kind: bitmap, columns: [delay]}]",
            (["id", "delay"], ["delay_bitmap", "own"]),
            id="one-index-for-another",
        ),
    ],
)
def test_an_overlay_removes_single_things(tmp_path: Path, text: str, left: tuple[list[str], list[str]]) -> None:
    specs = INSTANCE + VARIABLES + INDEXED + removal("table/air.flights", text)
    flights = load(tmp_path, specs, "prod").tables[0]
    assert ([column.name for column in flights.columns], sorted(index.name for index in flights.indexes)) == left
    assert len(load(tmp_path, specs, "dev").tables[0].columns) == 2


def test_an_overlay_removes_fields_and_clusters(tmp_path: Path) -> None:
    nested = TABLE.replace(
        "type: int32 }", "type: {struct: [{name: minutes, type: int32}, {name: why, type: string}]} }"
    )
    fields = "columns: [{name: delay, type: {struct: [{name: minutes, type: int32}]}}]"
    specs = (
        INSTANCE + CLUSTER + VARIABLES + nested + removal("instance/demo", "clusters: [{name: small, remove: true}]")
    )
    assert [cluster.name for cluster in load(tmp_path, specs, "prod").instance.clusters] == ["large"]
    specs += removal("table/air.flights", fields)
    assert format_type(load(tmp_path, specs, "prod").tables[0].columns[1].type) == "struct<minutes: int32>"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "columns: [{name: dely, remove: true}]",
            "`dely` does not exist, so it cannot be removed; did you mean delay?",
            id="mistyped",
        ),
        pytest.param(
            "columns: [{name: x, remove: true}]",
            "`x` does not exist, so it cannot be removed; leave it out",
            id="not-there",
        ),
        pytest.param(
            "clusters: [{name: small, remove: true}]", "`small` does not exist, so it cannot be removed", id="no-list"
        ),
        pytest.param("columns: [{name: id, remove: true}]", "no column `id`", id="that-others-name"),
    ],
)
def test_what_cannot_be_removed_is_told(tmp_path: Path, text: str, said: str) -> None:
    specs = INSTANCE + VARIABLES + INDEXED + removal("table/air.flights", text)
    with pytest.raises(InvalidSpecs) as caught:
        load(tmp_path, specs, "prod")
    assert any(said in str(problem) for problem in caught.value.problems)


def test_the_name_of_the_stack_is_a_variable_unless_specs_declare_one(tmp_path: Path) -> None:
    text = "kind: Instance\nname: demo\nroot: lakes/${stack}\n"
    assert load(tmp_path, text, "qa").instance.root == "lakes/qa"
    declared = text + "---\nkind: Variables\nvariables:\n  stack: { default: own }\n"
    assert load(tmp_path, declared, "qa").instance.root == "lakes/own"
    with pytest.raises(InvalidSpecs) as caught:
        load(tmp_path, text.replace("stack}", "stak}"), "qa")
    assert caught.value.problems[0].remedy == "did you mean stack?"
