"""The shape checks agree with a validator of JSON Schema on what is right; their words are in the golden files."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.errors import InvalidInput, InvalidSpecs, Problem
from deployer.platform.text.units import parse_size
from deployer.policy.schema import policies_schema
from deployer.specs import load_lake
from deployer.specs.schema.document import KINDS, json_schema
from deployer.specs.schema.parts import choice, size, text
from deployer.specs.types.parser import BadType, read_type
from deployer.specs.validation import faults as schema_faults
from deployer.specs.validation.branches import ALTERNATIVES
from deployer.specs.validation.faults import Shape, definition_shape
from deployer.specs.validation.messages import KEYWORDS, shape_problems
from deployer.specs.validation.plain_values import as_node
from deployer.specs.validation.validate import check_shape
from deployer.specs.values.target_server import server_of
from deployer.specs.yaml.nodes import Node, parse_yaml

TESTS = Path(__file__).parent
SPECS = TESTS.parents[1] / "specs"

formats = jsonschema.FormatChecker(formats=())


@formats.checks("column-type")
def _is_column_type(value: object) -> bool:
    return not isinstance(value, str) or not isinstance(read_type(value), BadType)


@formats.checks("bytes", raises=InvalidInput)
def _is_size(value: object) -> bool:
    return not isinstance(value, str) or parse_size(value) > 0


@formats.checks("server-uri", raises=InvalidInput)
def _is_server(value: object) -> bool:
    return not isinstance(value, str) or bool(server_of(value))


VALIDATOR = jsonschema.Draft202012Validator(json_schema(), format_checker=formats)


def agrees(document: Node) -> bool:
    problems: list[Problem] = []
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


def subschemas(schema: Any, unused: str = "") -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for key, child in schema.items():
            if key == unused:
                continue
            named = key in ("$defs", "properties", "patternProperties")
            for part in child.values() if named else child if isinstance(child, list) else [child]:
                yield from subschemas(part, unused)


DESCRIBING = frozenset(("$defs", "$schema", "default", "description", "examples", "patternErrorMessage", "title"))
#: Whose errors are those of the schemas inside of them.
APPLYING = frozenset(("$ref", "anyOf", "items", "oneOf", "patternProperties", "properties"))


def test_every_keyword_of_the_schema_has_words() -> None:
    assert {key for schema in subschemas(json_schema()) for key in schema} <= KEYWORDS | APPLYING | DESCRIBING


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_every_property_says_what_it_means() -> None:
    for schema in subschemas(json_schema()):
        for name, child in schema.get("properties", {}).items():
            target = json_schema()["$defs"][child["$ref"].rpartition("/")[2]] if "$ref" in child else {}
            assert child.get("description") or target.get("description"), name
            assert "title" in schema


def test_every_kind_is_described() -> None:
    assert set(KINDS) <= set(json_schema()["$defs"])
    assert set(KINDS) == {"Instance", "Schema", "Table", "View", "Dataset", "Variables", "Overlay"}


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


def test_alternatives_become_conditions() -> None:
    """Errors of alternatives that were not meant would be reported, each with a copy of the value."""
    checked = subschemas(definition_shape("Table").schema, unused=ALTERNATIVES)
    assert not {key for schema in checked for key in schema} & {"anyOf", "oneOf"}


def patterns() -> set[str]:
    schemas = [json_schema(), policies_schema()]
    return {found["pattern"] for schema in schemas for found in subschemas(schema) if "pattern" in found}


SAMPLES = ("", "a", "a.b", "7d", "256MB", "4g", "emr-8", "s3://a/b", "https://a", "a@b.c", "r7g.xlarge", "eu-central-1")
MORE_SAMPLES = (
    "table/a.b",
    "123456789012",
    "DEPLOYER_TOKEN_A",
    "glue:a",
    "[::1]:80",
    "arn:aws:kms:eu-central-1:1:key/a",
)
CHARACTERS = [*map(chr, (*range(0x250), 0x660, 0x2028, 0x2029, 0x3000, 0xFEFF, 0x1F600)), "\r\n"]


@pytest.mark.parametrize("pattern", sorted(patterns()))
def test_patterns_mean_the_same_to_python_and_to_the_validator(pattern: str) -> None:
    assert pattern[0] == "^"
    assert pattern[-1] == "$"
    shape, expected = Shape({"type": "string", "pattern": pattern}), re.compile(pattern[:-1] + r"\Z")
    for sample in (*SAMPLES, *MORE_SAMPLES):
        for character in CHARACTERS:
            for value in (sample, character + sample, sample[:2] + character + sample[2:], sample + character):
                assert shape.is_valid(value) == bool(expected.match(value)), repr(value)


def said(schema: dict[str, Any], value: Any) -> list[str]:
    problems, _ = shape_problems(Shape(schema), as_node(value), "`it`")
    return [f"{problem.what}; {problem.remedy}" for problem in problems]


NUMBER, WHOLE = {"type": "number", "minimum": 0, "maximum": 1}, {"type": "integer", "minimum": 0, "maximum": 9}
SIZE, SCALAR = size("A size."), {"type": ["string", "number", "boolean"]}
HOSTILE: list[tuple[dict[str, Any], Any, str]] = [
    (NUMBER, float("nan"), "`it` is nan and should be a finite number; write digits"),
    (NUMBER, float("-inf"), "`it` is -inf and should be a finite number; write digits"),
    (SCALAR, float("nan"), "`it` is nan and should be a finite number; write digits"),
    (WHOLE, float("inf"), "`it` is inf and should be a finite number; write digits"),
    (WHOLE, True, "`it` is `true` and should be a whole number; write digits"),
    (WHOLE, 10**20, "`it` is 100,000,000,000,000,000,000 and out of range; use 0 to 9"),
    (WHOLE, -(10**390), f"`it` is {-(10**390):,} and out of range; use 0 to 9"),
    (SIZE, float("inf"), "`it` cannot be `inf`; write a number of bytes, or a size such as 256MB or 1GiB"),
    (SIZE, 2**64, "`it` cannot be `18446744073709551616`; use 1 byte to 1 PiB"),
    ({"const": True}, 1, "`it` is the number 1 and should be `true`; write `true`"),
    (choice("One.", ("2.1", "2.2")), 2.1, '`it` is the number 2.1 and should be text; write "2.1" in quotes'),
    (text("A text.", pattern="^a$", patternErrorMessage="write a"), "\ud800", "`it` cannot be `\ud800`; write a"),
    (text("A text.", maxLength=1), "\ud800\ud800", "`it` has 2 characters; use at most 1"),
    (
        text("A text.", pattern="^(a+)+$", patternErrorMessage="write a"),
        "a" * 99 + "b",
        f"`it` cannot be `{'a' * 99}b`; write a",
    ),
]


@pytest.mark.parametrize(("schema", "value", "words"), HOSTILE)
def test_a_hostile_value_is_one_problem(schema: dict[str, Any], value: Any, words: str) -> None:
    assert said(schema, value) == [words]


def test_half_of_a_surrogate_pair_may_be_in_a_text_without_a_pattern() -> None:
    assert said({"type": "object", "additionalProperties": text("A text.")}, {"\ud800": "\udfff"}) == []


def test_half_of_a_surrogate_pair_may_be_in_the_name_of_a_wrong_value() -> None:
    names = {"type": "string", "pattern": "^a$", "patternErrorMessage": "write a"}
    schema = {"type": "object", "propertyNames": names, "additionalProperties": text("A text.")}
    assert len(said(schema, {"\ud800": 5})) == 2


def test_a_value_may_be_deep() -> None:
    deep: Any = "int8"
    for _ in range(60):
        deep = {"struct": [{"name": "a", "type": deep}, {"name": "b", "type": "int"}]}
    problems = said({"$ref": "#/$defs/type"}, deep)
    assert len(problems) == 60
    assert set(problems) == {problems[0]}


def test_the_parts_of_a_large_document_are_checked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: list[Any] = [{"name": f"c{number}", "type": "int8"} for number in range(40)]
    columns[7], columns[31] = {"name": "x"}, {"name": "y", "type": "int8", "nullable": 1}
    table = {"kind": "Table", "name": "t", "tags": dict.fromkeys("abcdefghij", "x"), "columns": columns, "onlin": 1}
    found = shape_problems(definition_shape("Table"), as_node(table), "it", owner="this Table")
    monkeypatch.setattr(schema_faults, "MOST_VALUES", 30)
    in_parts = shape_problems(definition_shape("Table"), as_node(table), "it", owner="this Table")
    assert sorted(map(str, in_parts[0])) == sorted(map(str, found[0]))
    assert in_parts[1] == found[1] == {"columns", "database", "online"}


def test_a_document_with_too_many_wrong_values_says_where_checking_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_faults, "MOST_VALUES", 10)
    wrong = {str(number): number for number in range(9)}
    table = {"kind": "Table", "database": "d", "name": "t", "columns": [5] * 20, "tags": wrong, "online": "yes"}
    problems, broken = shape_problems(definition_shape("Table"), as_node(table), "it", owner="this Table")
    whats = [problem.what for problem in problems]
    assert "item 11 of `columns` was not checked, as the document has too many values with problems" in whats
    assert "`tags` was not checked, as the document has too many values with problems" in whats
    assert sum("should be a mapping" in what for what in whats) == 10
    assert broken == {"columns", "tags", "online"}
