from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from deployer.errors import InvalidSpecs
from deployer.specs import load_lake
from deployer.specs.model import Lake
from deployer.specs.serialized.specs import table_from_json, table_to_json
from deployer.specs.types.types import Column, format_type
from tests.projects import folder_of_example

from .test_shape import SEEDS, mutated, values

LAKE = """
kind: Instance
name: lake
root: lakes/lake
clusters:
  big: { kind: local, cores: 4 }
---
kind: Schema
name: day
columns:
  - { name: year, type: int16, nullable: false }
---
kind: Schema
name: hour
schemas: [day]
columns:
  - { name: hour, type: int8, nullable: false, description: " 0 to 23. " }
---
kind: Table
database: db
name: trips
schemas: [hour]
x-text: &text { type: string, description: A text. }
columns:
  - <<: *text
    name: code
  - name: trip
    type:
      struct:
        - { name: miles, type: float32, nullable: false, description: Length. }
        - { name: stops, type: { list: { type: string, nullable: false, description: Codes. } } }
  - name: vector
    type: { vector: { item: float32, size: 3 } }
  - name: counts
    type: { map: { key: string, value: { type: int64, nullable: false } } }
row_keys: [year, hour]
partitions: { split_points: [2013, [2014, 6]] }
storage: { data_storage_version: "2.2", max_rows_per_file: 1e6 }
online: false
renamed_from: rides
"""


def load(text: str) -> Lake:
    with folder_of_example() as folder:
        (Path(folder) / "lake.yaml").write_text(text, encoding="utf-8")
        return load_lake(Path(folder), Path("lake.yaml"))


def test_a_table_is_what_its_document_and_schemas_say() -> None:
    (table,) = load(LAKE).tables
    assert [(column.name, format_type(column.type), column.nullable) for column in table.columns] == [
        ("year", "int16", False),
        ("hour", "int8", False),
        ("code", "string", True),
        ("trip", "struct<miles: float32 not null, stops: list<string not null>>", True),
        ("vector", "fixed_size_list<float32, 3>", True),
        ("counts", "map<string, int64 not null>", True),
    ]
    assert table.columns[1].description == "0 to 23."
    assert table.columns[2] == Column("code", table.columns[2].type, True, "A text.")
    assert table.split_points == ((2013,), (2014, 6))
    assert (table.online, table.deletion_protection, table.renamed_from) == (False, True, "rides")
    assert (table.storage.data_storage_version, table.storage.max_rows_per_file) == ("2.2", 1_000_000)
    assert table_from_json(table_to_json(table)) == table


def test_every_property_has_its_place() -> None:
    lake = load(LAKE)
    (table,) = lake.tables
    places = {path: (at.line, at.column) for path, at in table.sources.items()}
    assert places[""] == (19, 1)
    assert places["row_keys"] == (36, 1)
    assert places["columns"] == (24, 1)
    assert places["columns.year"] == (11, 5)
    assert places["columns.hour.description"] == (17, 48)
    assert places["columns.code.type"] == (23, 17)
    assert places["columns.trip.miles.nullable"] == (30, 41)
    assert places["columns.trip.stops.item.description"] == (31, 73)
    assert (table.columns[0].at, lake.instance.sources["clusters"].line) == (table.sources["columns.year"], 5)


def test_the_state_of_a_lake_on_s3_is_in_dynamodb_unless_said() -> None:
    assert load("kind: Instance\nname: a\nroot: s3://bucket/a\n").instance.state.backend == "dynamodb"
    assert load("kind: Instance\nname: a\nroot: a\n").instance.state.backend == "sqlite"


def test_clusters_are_the_same_as_a_list_and_by_name() -> None:
    by_name = "kind: Instance\nname: a\nroot: a\nclusters:\n  x: {kind: local, cores: 2}\n"
    as_list = "kind: Instance\nname: a\nroot: a\nclusters:\n  - {name: x, kind: local, cores: 2}\n"
    assert load(by_name).instance == load(as_list).instance


@given(st.randoms(use_true_random=False), values)
def test_any_specs_are_a_lake_or_problems(chance: random.Random, replacement: Any) -> None:
    documents = [*SEEDS]
    for _ in range(chance.randrange(1, 4)):
        index = chance.randrange(len(documents))
        documents[index] = mutated(documents[index], chance, replacement)
    text = "\n---\n".join(json.dumps(document) for document in documents)
    try:
        load(text)
    except InvalidSpecs as invalid:
        assert invalid.problems
        assert len(set(invalid.problems)) == len(invalid.problems)
