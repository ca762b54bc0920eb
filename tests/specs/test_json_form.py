from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from deployer.specs import load_lake
from deployer.specs.model import Cluster, InstanceSpec, KeyValue, StateBackend, Storage, TableSpec
from deployer.specs.serialized.specs import instance_from_json, instance_to_json, table_from_json, table_to_json
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column

from .type_strategies import descriptions, identifiers, tables_of

PROJECT = Path(__file__).parents[2]


def through_protobuf(form: Any) -> Any:
    """As Pulumi carries inputs: every number becomes a double."""
    return json_format.MessageToDict(json_format.ParseDict(form, struct_pb2.Struct()))


KEYS: dict[str, tuple[str, list[KeyValue]]] = {
    "integers": ("int64", [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "nanoseconds": ("timestamp[ns, UTC]", [1_700_000_000_000_000_001]),
    "floats": ("float64", [-1.5, 0.0, 3.0]),
    "text": ("string", ["", "a", "ü"]),
    "bytes": ("binary", [b"", b"\x00\xff"]),
    "decimals": ("decimal128(10, 2)", ["-1.50", "2.00"]),
    "booleans": ("bool", [False, True]),
}


@pytest.mark.parametrize("case", KEYS)
def test_split_points_come_back_exact_through_protobuf(case: str) -> None:
    text, values = KEYS[case]
    spec = TableSpec(
        "db", "t", (Column("k", parse_type(text), False),), ("k",), split_points=tuple((value,) for value in values)
    )
    back = table_from_json(through_protobuf(table_to_json(spec)))
    assert back == spec
    assert [[type(part) for part in point] for point in back.split_points] == [[type(value)] for value in values]


storages = st.builds(
    Storage,
    st.sampled_from(["2.1", "2.2"]),
    st.integers(1, 2**31 - 1),
    st.integers(65_536, 2**40),
    st.none() | st.booleans(),
)
tags = st.dictionaries(identifiers, descriptions, max_size=2)
table_specs = st.builds(
    TableSpec,
    database=identifiers,
    name=identifiers,
    columns=tables_of(),
    description=descriptions,
    online=st.booleans(),
    deletion_protection=st.booleans(),
    storage=storages,
    renamed_from=st.none() | identifiers,
    tags=tags,
)


@given(table_specs)
def test_tables_come_back(spec: TableSpec) -> None:
    form = table_to_json(spec)
    assert table_from_json(json.loads(json.dumps(form))) == spec
    assert table_from_json(through_protobuf(form)) == spec
    assert table_to_json(table_from_json(form)) == form


INSTANCES = {
    "least": InstanceSpec("a", "lakes/a"),
    "most": InstanceSpec(
        "a",
        "s3://bucket/a",
        "What for.",
        "embedded",
        StateBackend("dynamodb", {"table": "locks"}),
        (Cluster("big", "emr-serverless", {"cores": 4, "subnets": ["a", "b"]}), Cluster("l", "local", {})),
        {"b": "1", "a": "2"},
        ("ops@example.com",),
    ),
}


@pytest.mark.parametrize("case", INSTANCES)
def test_instances_come_back(case: str) -> None:
    spec = INSTANCES[case]
    back = instance_from_json(through_protobuf(instance_to_json(spec)))
    assert sorted(back.clusters, key=lambda c: c.name) == sorted(spec.clusters, key=lambda c: c.name)
    assert instance_from_json(json.loads(json.dumps(instance_to_json(spec)))) == spec


def test_whole_options_stay_integers() -> None:
    back = instance_from_json(through_protobuf(instance_to_json(INSTANCES["most"])))
    assert repr(next(c for c in back.clusters if c.name == "big").options["cores"]) == "4"


def test_defaults_are_left_out() -> None:
    assert table_to_json(TableSpec("db", "t", (Column("a", parse_type("int8")),))) == {
        "database": "db",
        "name": "t",
        "columns": [{"name": "a", "type": "int8"}],
    }


def test_clusters_have_no_order() -> None:
    form = {"name": "demo", "root": "lakes/demo", "clusters": {each: {"kind": "local"} for each in "bca"}}
    assert [each.name for each in instance_from_json(form).clusters] == ["a", "b", "c"]


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_the_lake_of_the_examples_comes_back(stack: str) -> None:
    lake = load_lake(PROJECT, Path("specs/nyc"), stack)
    assert instance_from_json(instance_to_json(lake.instance)) == lake.instance
    for table in lake.tables:
        assert table_from_json(through_protobuf(table_to_json(table))) == table
