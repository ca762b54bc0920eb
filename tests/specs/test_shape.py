"""The shape checks agree with a validator of JSON Schema on what is right; their words are in the golden files."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.errors import InvalidInput, InvalidSpecs
from deployer.specs import load_lake
from deployer.specs.json_schema import KINDS, json_schema
from deployer.specs.shape import check_shape
from deployer.specs.shape_checks import CHECKED, DESCRIBING, Problems
from deployer.specs.sizes import bytes_of
from deployer.specs.target_server import server_of
from deployer.specs.type_text import BadType, read_type
from deployer.specs.yaml import Node, parse_yaml

TESTS = Path(__file__).parent
SPECS = TESTS.parents[1] / "specs"

formats = jsonschema.FormatChecker(formats=())


@formats.checks("column-type")
def _is_column_type(value: object) -> bool:
    return not isinstance(value, str) or not isinstance(read_type(value), BadType)


@formats.checks("bytes", raises=InvalidInput)
def _is_size(value: object) -> bool:
    return not isinstance(value, str) or bytes_of(value) > 0


@formats.checks("server-uri", raises=InvalidInput)
def _is_server(value: object) -> bool:
    return not isinstance(value, str) or bool(server_of(value))


VALIDATOR = jsonschema.Draft202012Validator(json_schema(), format_checker=formats)


def agrees(document: Node) -> bool:
    problems = Problems()
    check_shape(document, problems)
    return VALIDATOR.is_valid(document.plain()) == (not problems)


def files() -> Iterator[Path]:
    yield from sorted((TESTS / "bad").rglob("*.yaml"))
    yield from sorted((TESTS / "many").rglob("*.yaml"))
    yield from sorted(SPECS.rglob("*.yaml"))


@pytest.mark.parametrize("file", list(files()), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_real_documents_are_judged_alike(file: Path) -> None:
    for document in parse_yaml(file.read_bytes(), file.name).documents:
        assert agrees(document)


SEEDS: list[Any] = [
    document.plain()
    for file in sorted(SPECS.rglob("*.yaml"))
    for document in parse_yaml(file.read_bytes(), "f").documents
] + [
    {
        "kind": "Instance",
        "name": "all-of-it",
        "root": "s3://bucket/lake",
        "engine": "cli",
        "state": {"backend": "dynamodb", "table": "locks", "region": "eu-central-1"},
        "clusters": [{"name": "a", "kind": "local", "cores": 4, "memory": "4g"}, {"name": "b", "kind": "emr"}],
    },
    {
        "kind": "Table",
        "database": "db",
        "name": "nested",
        "columns": [
            {"name": "a", "type": {"struct": [{"name": "b", "type": "int8", "nullable": False}]}},
            {"name": "c", "type": {"list": {"type": "string", "description": "x"}}},
            {"name": "d", "type": {"map": {"key": "string", "value": {"vector": {"item": "float32", "size": 3}}}}},
        ],
        "partitions": {"split_points": [1, [1, "x"], [True]]},
        "storage": {"data_storage_version": "2.2", "max_rows_per_file": 1e6, "stable_row_ids": False},
        "x-anything": [None],
    },
]
WORDS = sorted({word for word in json.dumps(json_schema()).replace('"', " ").split() if word.isidentifier()} | {"2.1"})
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(-10, 10) | st.sampled_from([*WORDS, "", "é", "a b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "x-y", "é"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def mutated(value: Any, chance: random.Random, replacement: Any) -> Any:
    """The value with one part replaced, added or left out."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        match chance.randrange(4):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, chance.choice(WORDS): replacement}
            case _:
                return {**value, key: mutated(value[key], chance, replacement)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        index = chance.randrange(len(value))
        return [*value[:index], mutated(value[index], chance, replacement), *value[index + 1 :]]
    return replacement


@given(st.sampled_from(SEEDS), st.randoms(use_true_random=False), values)
def test_mutated_documents_are_judged_alike(seed: Any, chance: random.Random, replacement: Any) -> None:
    text = json.dumps(mutated(seed, chance, replacement))
    for document in parse_yaml(text.encode(), "f.yaml").documents:
        assert agrees(document)


@given(values)
def test_any_value_is_judged_alike(value: Any) -> None:
    for document in parse_yaml(json.dumps(value).encode(), "f.yaml").documents:
        assert agrees(document)


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for key, child in schema.items():
            named = key in ("$defs", "properties", "patternProperties")
            for part in child.values() if named else child if isinstance(child, list) else [child]:
                yield from subschemas(part)


def test_the_schema_uses_only_keywords_that_are_checked() -> None:
    assert {key for schema in subschemas(json_schema()) for key in schema} <= CHECKED | DESCRIBING


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_every_property_says_what_it_means() -> None:
    for schema in subschemas(json_schema()):
        for name, child in schema.get("properties", {}).items():
            target = json_schema()["$defs"][child["$ref"].rpartition("/")[2]] if "$ref" in child else {}
            assert child.get("description") or target.get("description"), name
            assert "title" in schema


def test_every_kind_is_described() -> None:
    assert {"Instance", "Schema", "Table", "Variables", "Overlay"} == set(KINDS) <= set(json_schema()["$defs"])


def test_an_unknown_row_key_is_found_beside_columns_with_problems(tmp_path: Path) -> None:
    """A column with a problem hides no other: its name counts as known."""
    text = (
        "kind: Instance\nname: demo\nroot: lakes/demo\n---\nkind: Table\ndatabase: air\nname: flights\ncolumns:\n"
        "  - { name: id, type: int64, nullable: false }\n  - { name: gate, nullable: false, typ: 3 }\n"
        "row_keys: [id, gate, ident]\n"
    )
    (tmp_path / "lake.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSpecs) as caught:
        load_lake(tmp_path, Path("lake.yaml"))
    assert [problem.rule for problem in caught.value.problems if "row_keys" in problem.what] == ["unknown-key"]
    assert any("`ident`" in problem.what for problem in caught.value.problems)
