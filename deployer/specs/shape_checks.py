"""Compiles parts of the JSON Schema into functions that check nodes and report in words of our own.

A general validator takes seconds for a thousand tables and cannot say what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from deployer.errors import InvalidInput, Problem
from deployer.specs.column_names import NameFault, name_fault, path_fault
from deployer.specs.json_schema import json_schema
from deployer.specs.rules import Rule
from deployer.specs.sizes import bytes_of
from deployer.specs.target_server import server_of
from deployer.specs.type_text import BadType, read_type
from deployer.specs.words import fields_remedy, one_of, said, wanted_remedy
from deployer.specs.yaml import Node


class Problems(list[Problem]):
    """The problems found so far. `path` leads from the document's root to the value that is being checked, without
    the places of items in lists."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[str] = []


Check = Callable[[Node, str, Problems], None]  # value, what to call it, where to put problems
Schema = Mapping[str, Any]

_USER_INFO, _QUERY = re.compile(r"//[^/\s]*@"), re.compile(r"(://[^?#\s]*[?#])\S+")  # of a URL: secrets may be there

# The keywords of JSON Schema that are checked here, and those that only describe.
CHECKED = frozenset(
    {
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "enum",
        "format",
        "items",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "oneOf",
        "pattern",
        "patternProperties",
        "properties",
        "propertyNames",
        "required",
        "type",
    }
)
DESCRIBING = frozenset(("$defs", "$schema", "default", "description", "examples", "patternErrorMessage", "title"))


def unknown_field(
    key: str,
    child: Node,
    present: Mapping[str, Node],
    known: Sequence[str],
    owner: str,
    problems: Problems,
    homes: Sequence[str] = (),
) -> str:
    """Reports an unknown field; the field that was meant, as far as can be told.

    `homes` are the paths, from the document's root, of the mappings one level deeper that have a field of that name.
    """
    meant, remedy = fields_remedy(key, child, present, known, owner, homes)
    problems.append(Problem(child.key_at, f"unknown field `{key}` of {owner}", remedy, Rule.UNKNOWN_FIELD))
    return meant


def missing_fields(
    node: Node, present: Mapping[str, Node], required: Sequence[str], meant: set[str], owner: str, problems: Problems
) -> None:
    """Reports required fields that are neither there nor `meant` by a misspelt one; adds them to `meant`."""
    for key in required:
        if key not in present and key not in meant:
            problems.append(Problem(node.at, f"`{key}` is missing in {owner}", f"add `{key}:`", Rule.MISSING_FIELD))
            meant.add(key)


def deeper_fields(schema: Schema) -> Mapping[str, Sequence[str]]:
    """Fields of the mappings that are properties of an object, by name, with the properties that have them."""
    found: dict[str, list[str]] = {}
    for name, child in schema.get("properties", {}).items():
        branches = [resolved_schema(each) for each in child.get("anyOf", [child])]
        for key in dict.fromkeys(key for branch in branches for key in branch.get("properties", {})):
            found.setdefault(key, []).append(name)
    return found


def resolved_schema(schema: Schema) -> Schema:
    """The schema behind a `$ref`; keywords beside it describe."""
    reference = schema.get("$ref")
    return json_schema()["$defs"][reference.rpartition("/")[2]] if reference else schema


@cache
def _definition(name: str) -> Check:
    schema = json_schema()["$defs"][name]
    checks: list[Check] = []

    def check(node: Node, label: str, problems: Problems) -> None:
        if not checks:  # at the first use, because definitions refer to each other
            checks.append(compiled(schema))
        checks[0](node, label, problems)

    return check


def compiled(schema: Schema) -> Check:
    """The check of a part of the JSON Schema."""
    if "$ref" in schema:
        return _definition(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return _any_of(schema["anyOf"])
    if "oneOf" in schema:
        return _by_constant(schema["oneOf"])
    if schema.keys() <= DESCRIBING:
        return _anything
    if "const" in schema:
        return _constant(schema["const"])
    if schema.get("format") == "bytes":
        return _size(schema)
    match schema["type"]:
        case "object":
            return _object(schema)
        case "array":
            return _array(schema)
        case "string":
            return _string(schema)
        case "integer":
            return _integer(schema)
        case "number":
            return _number(schema)
        case "boolean":
            return _boolean
        case list():
            return _scalar
        case other:
            raise AssertionError(f"no check for the type {other}")


def _anything(node: Node, label: str, problems: Problems) -> None:
    """A value that is checked where it ends up."""


def _wrong(node: Node, label: str, wanted: str, problems: Problems) -> None:
    problems.append(
        Problem(
            node.at, f"{label} is {said(node)} and should be {wanted}", wanted_remedy(node, wanted), Rule.WRONG_TYPE
        )
    )


def _boolean(node: Node, label: str, problems: Problems) -> None:
    if node.value is not True and node.value is not False:
        _wrong(node, label, "true or false", problems)


def _scalar(node: Node, label: str, problems: Problems) -> None:
    if node.value is None or isinstance(node.value, (list, dict)):
        _wrong(node, label, "a single value", problems)


def _constant(constant: str | bool) -> Check:
    wanted = str(constant).lower() if isinstance(constant, bool) else constant

    def check(node: Node, label: str, problems: Problems) -> None:
        if node.value != constant:
            _wrong(node, label, f"`{wanted}`", problems)

    return check


def _integer(schema: Schema) -> Check:
    low, high = schema["minimum"], schema["maximum"]

    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
            _wrong(node, label, "a whole number", problems)
        elif not low <= value <= high:
            what = f"{label} is {value:,} and out of range"
            problems.append(Problem(node.at, what, f"use {low:,} to {high:,}", Rule.OUT_OF_RANGE))

    return check


def _number(schema: Schema) -> Check:
    low, high = schema["minimum"], schema["maximum"]

    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            _wrong(node, label, "a number", problems)
        elif not low <= value <= high:
            problems.append(
                Problem(node.at, f"{label} is {value} and out of range", f"use {low} to {high}", Rule.OUT_OF_RANGE)
            )

    return check


def _size(schema: Schema) -> Check:
    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            _wrong(node, label, "a size", problems)
            return
        try:
            bytes_of(value)
        except InvalidInput as error:
            what = f"{label} cannot be `{value}`"
            problems.append(Problem(node.at, what, error.remedy or schema["patternErrorMessage"], Rule.BAD_TEXT))

    return check


def _string(schema: Schema) -> Check:
    if schema.get("format") == "column-type":
        return _column_type
    if name_check := _NAME_CHECKS.get(schema.get("format", "")):
        return _column_name(name_check)
    choices, pattern = schema.get("enum"), schema.get("pattern")
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
    matches = re.compile(pattern.removesuffix("$") + r"\Z").match if pattern else None

    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        if value.__class__ is not str:
            if choices and str(value) in choices:
                what, remedy = f"{label} is {said(node)} and should be text", f'write "{value}" in quotes'
                problems.append(Problem(node.at, what, remedy, Rule.WRONG_TYPE))
            else:
                _wrong(node, label, "text", problems)
            return
        assert isinstance(value, str)  # noqa: S101
        if choices:
            if value not in choices:
                what = f"{label} cannot be `{value}`"
                problems.append(Problem(node.at, what, one_of(value, choices), Rule.UNKNOWN_VALUE))
        elif len(value) < shortest:
            what = f"{label} is empty" if not value else f"{label} is shorter than {shortest} characters"
            problems.append(Problem(node.at, what, "write some text", Rule.BAD_TEXT))
        elif longest and len(value) > longest:
            what = f"{label} has {len(value)} characters"
            problems.append(Problem(node.at, what, f"use at most {longest}", Rule.BAD_TEXT))
        elif matches and not matches(value):
            shown = _QUERY.sub(r"\1…", _USER_INFO.sub("//…@", value))
            problems.append(
                Problem(node.at, f"{label} cannot be `{shown}`", schema["patternErrorMessage"], Rule.BAD_TEXT)
            )
        elif schema.get("format") == "server-uri":
            _server(node, label, value, problems)

    return check


def _server(node: Node, label: str, value: str, problems: Problems) -> None:
    try:
        server_of(value)
    except InvalidInput as error:
        problems.append(Problem(node.at, f"{label} cannot be `{value}`: {error.what}", error.remedy, Rule.BAD_TEXT))


_NAME_CHECKS: Mapping[str, Callable[[str], NameFault | None]] = {
    "column-name": partial(name_fault, nested=True),
    "column-path": path_fault,
}  # `_row` is a later check


def _column_name(fault_of: Callable[[str], NameFault | None]) -> Check:
    def check(node: Node, label: str, problems: Problems) -> None:
        if not isinstance(node.value, str):
            _wrong(node, label, "text", problems)
        elif fault := fault_of(node.value):
            problems.append(Problem(node.at, f"{label}: {fault.what}", fault.remedy, fault.rule))

    return check


def _column_type(node: Node, label: str, problems: Problems) -> None:
    value = node.value
    assert isinstance(value, str)  # noqa: S101 -- chosen by its JSON type
    read = read_type(value)
    if isinstance(read, BadType):
        problems.append(Problem(node.at, read.what, read.remedy, read.rule))


def _array(schema: Schema) -> Check:
    item_check = compiled(schema["items"])
    at_least = schema.get("minItems", 0)

    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        if not isinstance(value, list):
            _wrong(node, label, "a list", problems)
            return
        if len(value) < at_least:
            problems.append(Problem(node.at, f"{label} is empty", "write at least one item", Rule.OUT_OF_RANGE))
        for index, item in enumerate(value):
            item_check(item, f"item {index + 1} of {label}" if label[0] == "`" else label, problems)

    return check


def _check_child(check: Check, child: Node, key: str, label: str, problems: Problems) -> None:
    if not isinstance(child.value, dict | list):
        check(child, label, problems)
        return
    problems.path.append(key)
    check(child, label, problems)
    problems.path.pop()


def _object(schema: Schema) -> Check:
    checks = {key: (f"`{key}`", compiled(child)) for key, child in schema.get("properties", {}).items()}
    required: Sequence[str] = schema.get("required", ())
    rest = schema["additionalProperties"]
    rest_check = compiled(rest) if rest else None
    name_check = compiled(schema["propertyNames"]) if "propertyNames" in schema else None
    owner = schema.get("title", "")
    exactly_one = schema.get("maxProperties") == 1
    deeper = cache(lambda: deeper_fields(schema))  # at the first use, because definitions refer to each other

    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        if not isinstance(value, dict):
            _wrong(node, label, "a mapping", problems)
            return
        meant: set[str] = set()
        torn = _torn(value) if rest_check is None and None in [child.value for child in value.values()] else {}
        for key, child in value.items():
            if key in torn:
                meant |= {key, torn[key].key}
                problems.append(torn[key].problem)
            elif key in meant:
                continue
            elif known := checks.get(key):
                called, child_check = known
                _check_child(child_check, child, key, called, problems)
            elif rest_check:
                if name_check:
                    name_check(Node(key, child.file, child.key_line, child.key_column), f"a name in {label}", problems)
                _check_child(rest_check, child, key, f"`{key}`", problems)
            else:
                homes = [".".join((*problems.path, name)) for name in deeper().get(key, ())]
                meant.add(unknown_field(key, child, value, tuple(checks), owner, problems, homes))
        missing_fields(node, value, required, meant, f"this {owner.lower()}", problems)
        if exactly_one and not meant and len(value) != 1:
            what = f"{label} has {len(value)} of {', '.join(checks)}"
            problems.append(Problem(node.at, what, "write exactly one of them", Rule.OUT_OF_RANGE))

    return check


class _Torn(NamedTuple):
    """A text with a comma that the flow style took apart, as in `{type: decimal128(10, 2)}`."""

    key: str  # what its second half became
    problem: Problem


def _torn(properties: Mapping[str, Node]) -> Mapping[str, _Torn]:
    """By the field whose value was torn."""
    torn: dict[str, _Torn] = {}
    previous: tuple[str, Node] | None = None
    for key, child in properties.items():
        if previous and child.value is None and key[-1:] in (")", "]", ">") and isinstance(previous[1].value, str):
            field, node = previous
            what = f"`{field}` ends at the comma, as values inside of {{…}} do"
            remedy = f'quote it: {field}: "{node.value}, {key}"'
            torn[field] = _Torn(key, Problem(node.at, what, remedy, Rule.YAML_SYNTAX))
        previous = (key, child)
    return torn


_JSON_TYPES: Mapping[type, str] = {dict: "object", list: "array", str: "string"}
_WANTED: Mapping[str, str] = {"object": "a mapping", "array": "a list", "string": "text"}


def _any_of(branches: Sequence[Schema]) -> Check:
    """Chooses by the JSON type, and among mappings by which required properties are there."""
    resolved = [(resolved_schema(branch), compiled(branch)) for branch in branches]

    def types(schema: Schema) -> Sequence[str]:
        return schema["type"] if isinstance(schema["type"], list) else (schema["type"],)

    wanted = " or ".join(dict.fromkeys(_WANTED[t] for schema, _ in resolved for t in types(schema) if t in _WANTED))
    formats = {schema.get("format") for schema, _ in resolved}
    scalars = any(isinstance(schema["type"], list) for schema, _ in resolved)
    wanted = f"a single value or {wanted}" if scalars else wanted

    of_number = [branch for branch in resolved if isinstance(branch[0]["type"], list)]
    of_type = {name: [branch for branch in resolved if name in types(branch[0])] for name in (*_WANTED, "null")}

    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        fits = of_number if isinstance(value, (bool, int, float)) else of_type[_JSON_TYPES.get(value.__class__, "null")]
        if value is None and "column-type" in formats:
            what = f"{label} is empty"
            problems.append(Problem(node.at, what, 'write a type; the type null is "null", in quotes', Rule.WRONG_TYPE))
        elif not fits:
            _wrong(node, label, wanted, problems)
        else:
            chosen = fits[-1]
            if len(fits) > 1 and isinstance(value, dict):
                named = (b for b in fits if b[0]["required"] and all(key in value for key in b[0]["required"]))
                chosen = next(named, chosen)
            chosen[1](node, label, problems)

    return check


def _by_constant(branches: Sequence[Schema]) -> Check:
    """Chooses by the property that has a constant in each branch."""
    key = next(name for name, child in branches[0]["properties"].items() if "const" in child)
    checks = {branch["properties"][key]["const"]: compiled(branch) for branch in branches}

    def check(node: Node, label: str, problems: Problems) -> None:
        value = node.value
        if not isinstance(value, dict):
            _wrong(node, label, f"a mapping with `{key}:`", problems)
            return
        choice = value.get(key)
        if choice is None:
            what = f"{label} has no `{key}`"
            problems.append(Problem(node.at, what, f"add `{key}:` and one of {', '.join(checks)}", Rule.MISSING_FIELD))
        elif isinstance(choice.value, str) and choice.value in checks:
            checks[choice.value](node, label, problems)
        else:
            what = f"unknown {key} {said(choice)} of {label}"
            problems.append(Problem(choice.at, what, one_of(choice.value, tuple(checks)), Rule.UNKNOWN_VALUE))

    return check
