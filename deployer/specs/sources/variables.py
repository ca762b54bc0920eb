"""Variables, which values refer to as `${name}`. A variable has a type, and each stack may set its value. Expressions
are never evaluated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deployer.errors import Position, Problem
from deployer.specs.rules import Rule
from deployer.specs.sources.limits import SubstitutedText
from deployer.specs.yaml.nodes import Node, Value, resolve_plain
from deployer.specs.yaml.suggestions import nearest, node_text

_REFERENCE = re.compile(r"\$(\$?)\{([^{}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: keys of deployer's Pulumi namespace that are settings of the tool, not variables
SETTINGS = ("specs", "aws", "jobs", "target_hosts", "trusted_functions", "trusted_authors", "trust_udfs")
STACK = "stack"  #: the variable with the name of the stack, which is defined without a declaration

Scalar = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Environment:
    """The stack for which the specs are read, and the values that its Pulumi configuration sets.

    `values` are texts by the name of the variable; `file` is the file of the configuration. Without a stack, variables
    have their defaults, and no overlay applies.
    """

    stack: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    file: str = "Pulumi.yaml"


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable. `value` is its value in this stack, None where it has no value."""

    name: str
    type: str
    at: Position
    value: Scalar | None
    usable: bool = True  #: False where the value has a problem, which is already reported


@dataclass(frozen=True, slots=True)
class SubstitutedNode:
    """A document whose references to variables are replaced. `unresolved` are the positions of values with references
    that could not be resolved."""

    node: Node
    unresolved: frozenset[Position] = frozenset()


def read_variables(documents: Sequence[Node], environment: Environment, problems: list[Problem]) -> dict[str, Variable]:
    """Returns the variables that `documents` declare, by name, with their values in the stack of `environment`.

    `documents` are Variables documents with valid shapes. Faults are added to `problems`.
    """
    found: dict[str, Variable] = {}
    for document in documents:
        for name, node in _mapping(_mapping(document).get("variables")).items():
            if name in found:
                what = f"variable `{name}` is declared already ({found[name].at})"
                problems.append(Problem(node.key_at, what, "rename or remove one of them", Rule.DUPLICATE_VARIABLE))
            elif name in SETTINGS:
                what = f"a variable cannot be called `{name}`, as deployer:{name} is a setting"
                problems.append(Problem(node.key_at, what, "use another name", Rule.RESERVED_NAME))
            else:
                found[name] = _declared(name, node, problems)
    for document in documents:
        for stack, values in _mapping(_mapping(document).get("stacks")).items():
            _set_by_stack(found, values, stack == environment.stack, problems)
    _set_by_config(found, environment, problems)
    if environment.stack is not None:
        found.setdefault(STACK, Variable(STACK, "string", Position(environment.file), environment.stack))
    return found


def _declared(name: str, node: Node, problems: list[Problem]) -> Variable:
    properties = _mapping(node)
    chosen, default = properties.get("type"), properties.get("default")
    kind = str(chosen.value) if chosen else _type_of(default.value) if default else "string"
    value = _fitting(name, kind, default, problems) if default else None
    return Variable(name, kind, node.key_at, value, default is None or value is not None)


def _set_by_stack(found: dict[str, Variable], values: Node, chosen: bool, problems: list[Problem]) -> None:
    for name, node in _mapping(values).items():
        variable = found.get(name)
        if variable is None:
            near = nearest(name, tuple(found))
            remedy = f"did you mean {near}?" if near else "declare it under `variables`"
            problems.append(Problem(node.key_at, f"unknown variable `{name}`", remedy, Rule.UNKNOWN_VARIABLE))
            continue
        value = _fitting(name, variable.type, node, problems)
        if chosen:
            found[name] = Variable(name, variable.type, variable.at, value, value is not None)


def _set_by_config(found: dict[str, Variable], environment: Environment, problems: list[Problem]) -> None:
    at = Position(environment.file)
    for name, text in environment.values.items():
        variable = found.get(name)
        if name in SETTINGS:
            continue
        if variable is None:
            if near := nearest(name, tuple(found)):  # others may be settings of other releases
                what = f"deployer:{name} sets no variable of the specs"
                problems.append(Problem(at, what, f"did you mean deployer:{near}?", Rule.UNKNOWN_VARIABLE))
            continue
        value = text if variable.type == "string" else resolve_plain(text)
        fitting = _fitting(f"deployer:{name}", variable.type, Node(value, at.file, at.line, at.column), problems)
        found[name] = Variable(name, variable.type, variable.at, fitting, fitting is not None)


def _type_of(value: Value) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case _:
            return "string"


def _fitting(name: str, kind: str, node: Node, problems: list[Problem]) -> Scalar | None:
    value = node.value
    match kind, value:
        case "string", str():
            return value
        case "boolean", bool():
            return value
        case "integer" | "number", int() | float() if not isinstance(value, bool):
            if kind == "number" or value == int(value):
                return value if kind == "number" else int(value)
        case _:
            pass
    what = f"variable `{name}` is {node_text(node)} and should be of type {kind}"
    remedy = f'write "{value}" in quotes' if kind == "string" and value is not None else _EXAMPLES[kind]
    problems.append(Problem(node.at, what, remedy, Rule.VARIABLE_TYPE))
    return None


_EXAMPLES = {
    "string": "write some text",
    "integer": "write a whole number",
    "number": "write a number",
    "boolean": "write true or false",
}


def substitute(
    document: Node,
    variables: Mapping[str, Variable],
    stack: str | None,
    problems: list[Problem],
    counted: SubstitutedText,
) -> SubstitutedNode:
    """Returns the document with every `${name}` in its values replaced. `$${` becomes `${`; keys are unchanged.

    A value that consists of one reference gets the variable's type; inside longer texts the value becomes text.
    `counted` counts the characters of all files. Once they exceed the limit, further references are not replaced.
    """
    unresolved: set[Position] = set()

    def walk(node: Node) -> Node:
        value = node.value
        if isinstance(value, str):
            return node._replace(value=text(node, value)) if "${" in value else node
        if isinstance(value, list):
            return node._replace(value=[walk(item) for item in value])
        if isinstance(value, dict):
            return node._replace(value={key: walk(child) for key, child in value.items()})
        return node

    def text(node: Node, value: str) -> Value:
        whole = _REFERENCE.fullmatch(value)
        if whole and not whole[1]:
            found = resolve(node, whole)
            return value if found is None else found
        return _REFERENCE.sub(lambda match: part(node, match), value)

    def part(node: Node, match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        found = resolve(node, match)
        return match[0] if found is None else _as_text(found)

    def resolve(node: Node, match: re.Match[str]) -> Scalar | None:
        problem = None
        name = match[2]
        variable = variables.get(name)
        if not match[3] or not _NAME.fullmatch(name):
            what = f"`{match[0]}` is not a variable's name in braces"
            remedy = "write ${name}, as nothing is evaluated; the text itself is written $${"
            problem = Problem(node.at, what, remedy, Rule.VARIABLE_SYNTAX)
        elif variable is None:
            near = nearest(name, tuple(variables))
            remedy = (
                f"did you mean {near}?" if near else "declare it in `kind: Variables`; the text itself is written $${"
            )
            problem = Problem(node.at, f"unknown variable `{name}`", remedy, Rule.UNKNOWN_VARIABLE)
        elif variable.value is None and variable.usable:
            where = f" in stack `{stack}`" if stack else ""
            remedy = f"give it a `default` ({variable.at}), or a value under `stacks`"
            what = f"variable `{name}` has no value{where}"
            problem = Problem(node.at, what, remedy, Rule.VARIABLE_WITHOUT_VALUE)
        if variable is not None and variable.value is not None and problem is None:
            problem = counted.add(str(variable.value), node.at)
            if not counted.is_over:
                return variable.value
        if problem is not None and problem not in problems[-8:]:
            problems.append(problem)
        unresolved.add(node.at)
        return None

    return SubstitutedNode(walk(document), frozenset(unresolved))


def escaped(value: Any) -> Any:
    """Returns plain values with `$${` for the text `${`. Keys are unchanged, because keys cannot have variables."""
    match value:
        case str():
            return value.replace("${", "$${")
        case Mapping():
            return {key: escaped(item) for key, item in value.items()}
        case list() | tuple():
            return [escaped(item) for item in value]
        case _:
            return value


def has_variable(text: str) -> bool:
    """Returns whether a value, as written in the file, refers to a variable."""
    return any(not match[1] for match in _REFERENCE.finditer(text))


def _as_text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mapping(node: Node | None) -> Mapping[str, Node]:
    return node.value if node is not None and isinstance(node.value, dict) else {}
