"""Turns errors of the JSON Schema into problems: where the value is, what is wrong, and what was likely meant."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from deployer.errors import Problem
from deployer.specs.rules import Rule
from deployer.specs.validation.branches import CHOSEN_BY, TEXT_FORMAT, Schema, types_of
from deployer.specs.validation.faults import TOO_LARGE, Fault, NameOf, Path, Shape
from deployer.specs.validation.field_messages import field_problems, torn_fields
from deployer.specs.validation.formats import FORMATS, FormatFault
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import node_text, one_of, wanted_remedy

_USER_INFO, _QUERY = re.compile(r"//[^/\s]*@"), re.compile(r"(://[^?#\s]*[?#])\S+")  # of URLs; both may be secrets

_OF_FIELDS = frozenset(("additionalProperties", "required", "minProperties", "maxProperties"))
#: keywords in the order of their importance: of the keywords that a value violates, only the first is reported
_OF_VALUES = ("type", "const", "enum", "minItems", "minLength", "maxLength", "minimum", "maximum", "pattern", "format")
KEYWORDS = frozenset((*_OF_FIELDS, *_OF_VALUES, "propertyNames"))  #: the keywords whose errors are explained here
_SAY_MORE = ("bytes", "column-name", "column-path")  #: formats whose faults explain more than their pattern's error
_WANTED = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}


def shape_problems(shape: Shape, root: Node, label: str, owner: str = "") -> tuple[list[Problem], frozenset[str]]:
    """Returns every problem of a value, and its properties that cannot be used unchanged.

    These are properties with problems, missing properties, and properties that a misspelt one means. `label` names the
    value in messages. `owner` names it as the owner of its properties; the default is the title of the schema.
    """
    problems: list[Problem] = []
    invalid: set[str] = set()
    faults = _by_path(shape.faults(root.plain()))
    torn = {
        (*path, field)
        for path, found in faults.items()
        if _has_unknown_fields(found)
        for field in _torn(root, path, found)
    }
    for path, found in faults.items():
        if torn and any(path[:end] in torn for end in range(1, len(path) + 1)):
            continue
        node, called = _node(root, path), _label(path, label)
        schema = found[0].schema
        if found[0].keyword in _OF_FIELDS and CHOSEN_BY not in schema:
            title = owner if owner and not path else f"this {schema.get('title', '').lower()}"
            more, meant = field_problems(node, schema, path, called, title)
            problems += more
            invalid |= meant if not path else {str(path[0])} if more else set()
        else:
            chosen = CHOSEN_BY in schema
            problem = _choice_problem(node, schema, path, label) if chosen else _value_problem(node, found, called)
            problems.append(problem)
            invalid |= {str(path[0])} if path else set()
    return problems, frozenset(invalid)


def _by_path(faults: Iterable[Fault]) -> dict[Path, list[Fault]]:
    found: dict[Path, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.path, []).append(fault)
    return found


def _has_unknown_fields(faults: Sequence[Fault]) -> bool:
    return any(fault.keyword == "additionalProperties" for fault in faults)


def _torn(root: Node, path: Path, faults: Sequence[Fault]) -> Iterable[str]:
    value = _node(root, path).value
    return torn_fields(value) if isinstance(value, dict) else ()


def _node(root: Node, path: Path) -> Node:
    """Returns the value behind a path; the mapping itself for a key with half of a surrogate pair, which paths do not
    have."""
    node = root
    for part in path:
        value = node.value
        match part:
            case NameOf(key) if isinstance(value, dict):
                child = value.get(key, node)
                node = Node(key, child.file, child.key_line, child.key_column)
            case str() if isinstance(value, dict):
                node = value.get(part, node)
            case int() if isinstance(value, list):
                node = value[part]
    return node


def _label(path: Path, label: str) -> str:
    for part in path:
        match part:
            case NameOf():
                label = f"a name in {label}"
            case str():
                label = f"`{part}`"
            case int() if label.startswith("`"):
                label = f"item {part + 1} of {label}"
    return label


def _value_problem(node: Node, faults: Sequence[Fault], label: str) -> Problem:
    by_keyword = {fault.keyword: fault.schema for fault in faults}
    keyword = next((each for each in _OF_VALUES if each in by_keyword), faults[0].keyword)
    schema, value = by_keyword[keyword], node.value
    if fault := _format_fault(value, schema.get("format", ""), keyword, label):
        return Problem(node.at, fault.what, fault.remedy, fault.rule)
    match keyword:
        case "type":
            return _type_problem(node, schema, label)
        case "const":
            constant = schema["const"]
            return _wrong(node, label, f"`{str(constant).lower() if isinstance(constant, bool) else constant}`")
        case "enum":
            return Problem(node.at, f"{label} cannot be `{value}`", one_of(value, schema["enum"]), Rule.UNKNOWN_VALUE)
        case "minItems":
            return Problem(node.at, f"{label} is empty", "write at least one item", Rule.OUT_OF_RANGE)
        case "minLength":
            what = f"{label} is shorter than {schema['minLength']} characters" if value else f"{label} is empty"
            return Problem(node.at, what, "write some text", Rule.BAD_TEXT)
        case "maxLength":
            length, most = len(str(value)), schema["maxLength"]
            return Problem(node.at, f"{label} has {length} characters", f"use at most {most}", Rule.BAD_TEXT)
        case "minimum" | "maximum":
            low, high = schema["minimum"], schema["maximum"]
            if types_of(schema) == ("number",):
                what, remedy = f"{label} is {value} and out of range", f"use {low} to {high}"
            else:
                what, remedy = f"{label} is {value:,} and out of range", f"use {low:,} to {high:,}"
            return Problem(node.at, what, remedy, Rule.OUT_OF_RANGE)
        case "pattern":
            shown = _QUERY.sub(r"\1…", _USER_INFO.sub("//…@", str(value)))
            return Problem(node.at, f"{label} cannot be `{shown}`", schema["patternErrorMessage"], Rule.BAD_TEXT)
        case keyword if keyword == TOO_LARGE:
            what = f"{label} was not checked, as the document has too many values with problems"
            return Problem(node.at, what, "correct the others first, or split it", Rule.OUT_OF_RANGE)
        case _:
            raise AssertionError(f"there is no message for the keyword {keyword}")


def _format_fault(value: object, name: str, keyword: str, label: str) -> FormatFault | None:
    """Returns the fault that the format finds, where it explains more than the violated keyword; None otherwise."""
    of_number = name == "bytes" and isinstance(value, int | float) and not isinstance(value, bool)
    if (keyword == "format" or name in _SAY_MORE) and (of_number or isinstance(value, str)):
        return FORMATS[name](value, label)
    return None


def _choice_problem(node: Node, schema: Schema, path: Path, label: str) -> Problem:
    """Returns the problem of a mapping for which a property selects the alternative, or the problem of this
    property."""
    key = schema[CHOSEN_BY]
    if "enum" in schema:
        what = f"unknown {key} {node_text(node)} of {_label(path[:-1], label)}"
        return Problem(node.at, what, one_of(node.value, schema["enum"]), Rule.UNKNOWN_VALUE)
    called = _label(path, label)
    if not isinstance(node.value, dict):
        return _wrong(node, called, f"a mapping with `{key}:`")
    remedy = f"add `{key}:` and one of {', '.join(schema['properties'][key]['enum'])}"
    return Problem(node.at, f"{called} has no `{key}`", remedy, Rule.MISSING_FIELD)


def _type_problem(node: Node, schema: Schema, label: str) -> Problem:
    value, types = node.value, types_of(schema)
    choices = schema.get("enum", ())
    if value is None and schema.get(TEXT_FORMAT) == "column-type":
        remedy = 'write a type; the type null is "null", in quotes'
        return Problem(node.at, f"{label} is empty", remedy, Rule.WRONG_TYPE)
    if isinstance(value, float) and not math.isfinite(value) and {"number", "integer"} & set(types):
        remedy = "write digits"
        return Problem(node.at, f"{label} is {value} and should be a finite number", remedy, Rule.WRONG_TYPE)
    if str(value) in choices:
        remedy = f'write "{value}" in quotes'
        return Problem(node.at, f"{label} is {node_text(node)} and should be text", remedy, Rule.WRONG_TYPE)
    if schema.get("format") == "bytes":
        return _wrong(node, label, "a size")
    if not {"number", "boolean"} & set(types) or len(types) == 1:
        return _wrong(node, label, " or ".join(_WANTED[each] for each in types))
    collections = [_WANTED[each] for each in types if each in ("array", "object")]
    return _wrong(node, label, " or ".join(("a single value", *collections)))


def _wrong(node: Node, label: str, wanted: str) -> Problem:
    what = f"{label} is {node_text(node)} and should be {wanted}"
    return Problem(node.at, what, wanted_remedy(node, wanted), Rule.WRONG_TYPE)
