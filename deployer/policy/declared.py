"""Reads built-in rules and approvals in YAML, with the reader and the checks of specs."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from functools import cache

from deployer.errors import Position, Problem
from deployer.plan.verdict import Enforcement
from deployer.policy.builtin import BUILTIN
from deployer.policy.model import Approval, Policy
from deployer.policy.schema import APPROVAL, policy_schema
from deployer.specs.rules import Rule
from deployer.specs.validation.faults import Shape
from deployer.specs.validation.messages import shape_problems
from deployer.specs.yaml.nodes import Node, parse_yaml
from deployer.specs.yaml.suggestions import nearest, node_text, one_of

KINDS = ("Policy", "Approval")


def read_declared(data: bytes, file: str, problems: list[Problem]) -> Iterator[Policy | Approval]:
    """Yields the valid rules and approvals of a file. Adds faults of the others to `problems`."""
    parsed = parse_yaml(data, file)
    problems += parsed.problems
    for document in parsed.documents:
        wrong: list[Problem] = []
        found = _read(document, wrong)
        problems += wrong
        if found is not None and not wrong:
            yield found


def _read(document: Node, problems: list[Problem]) -> Policy | Approval | None:
    properties = document.value
    if not isinstance(properties, dict):
        what = f"a document is {node_text(document)} and should be a mapping"
        problems.append(Problem(document.at, what, f"start it with `kind:` and {' or '.join(KINDS)}", Rule.WRONG_TYPE))
        return None
    kind = properties.get("kind")
    if kind is None:
        remedy = f"add `kind:` and {' or '.join(KINDS)}"
        problems.append(Problem(document.at, "a document has no `kind`", remedy, Rule.MISSING_FIELD))
        return None
    match kind.value:
        case "Policy":
            return _policy(document, properties, problems)
        case "Approval":
            return _approval(document, properties, problems)
    problems.append(Problem(kind.at, f"unknown kind {node_text(kind)}", one_of(kind.value, KINDS), Rule.UNKNOWN_KIND))
    return None


def _policy(document: Node, properties: Mapping[str, Node], problems: list[Problem]) -> Policy | None:
    rule = properties.get("rule")
    if rule is None:
        near = next((key for key in properties if nearest(key, ("rule",))), None)
        at, what = (properties[near].key_at, f"unknown field `{near}`") if near else (document.at, "it has no `rule`")
        remedy = "did you mean rule?" if near else f"add `rule:` and one of {', '.join(BUILTIN)}"
        problems.append(Problem(at, what, remedy, Rule.MISSING_FIELD))
        return None
    name = rule.value if isinstance(rule.value, str) else ""
    builtin = BUILTIN.get(name)
    if builtin is None:
        what = f"there is no built-in rule {node_text(rule)}"
        problems.append(Problem(rule.at, what, one_of(rule.value, tuple(BUILTIN)), Rule.UNKNOWN_VALUE))
        return None
    before = len(problems)
    problems += shape_problems(_shape(name), document, "the policy")[0]
    if len(problems) == before and builtin.one_of and not properties.keys() & set(builtin.one_of):
        what = f"the rule {name} requires nothing"
        problems.append(Problem(rule.at, what, f"give {' or '.join(builtin.one_of)}", Rule.MISSING_FIELD))
    if len(problems) > before:
        return None
    plain = document.plain()
    options = {key: value for key, value in plain.items() if key in builtin.properties}
    return Policy(
        plain.get("name", name),
        builtin.check(options),
        document.at,
        Enforcement(plain.get("enforcement", Enforcement.MANDATORY)),
        plain.get("description", builtin.summary),
        tuple(plain.get("stacks", ())),
        tuple(plain.get("addresses", ())),
    )


@cache
def _shape(rule: str) -> Shape:
    return Shape(policy_schema(rule))


@cache
def _approval_shape() -> Shape:
    return Shape(APPROVAL)


def _approval(document: Node, properties: Mapping[str, Node], problems: list[Problem]) -> Approval | None:
    before = len(problems)
    problems += shape_problems(_approval_shape(), document, "the approval")[0]
    until = _date(properties.get("until"), problems)
    address = properties.get("address")
    if address and isinstance(address.value, str) and not re.match(r"(table|instance)/.", address.value):
        remedy = f"write table/{address.value}" if "/" not in address.value else "write table/DATABASE.NAME"
        problems.append(Problem(address.at, f"`{address.value}` is not a valid address", remedy, Rule.BAD_TEXT))
    if len(problems) > before or until is None:
        return None
    plain = document.plain()
    return Approval(
        rule=plain["rule"],
        address=plain["address"],
        by=plain["by"],
        reason=plain["reason"],
        until=until,
        at=document.at,
        column=plain.get("column", ""),
        stacks=tuple(plain.get("stacks", ())),
    )


def _date(node: Node | None, problems: list[Problem]) -> dt.date | None:
    if node is None or not isinstance(node.value, str) or not node.value:
        return None  # the check of the shape reports it
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", node.value):
            return dt.date.fromisoformat(node.value)
    except ValueError:
        pass
    problems.append(Problem(node.at, f"`until` is {node_text(node)}", "write a day as 2026-12-31", Rule.BAD_TEXT))
    return None


def unknown_rule(approval: Approval, names: tuple[str, ...]) -> Problem:
    """Returns the problem of an approval that names an unknown rule. `names` are the existing rules."""
    what = f"an approval of {approval.rule}, and there is no rule of that name"
    return Problem(approval.at, what, one_of(approval.rule, names) if names else "remove it", Rule.UNKNOWN_VALUE)


def repeated_name(name: str, at: Position, first: Position) -> Problem:
    """Returns the problem of a rule at `at` whose name the rule at `first` already has. Approvals refer to rules by
    name, so names are unique."""
    return Problem(
        at, f"a second rule is named {name}, as the one at {first}", "give it another `name`", "duplicate-rule"
    )
