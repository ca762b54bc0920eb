"""IAM's evaluation of policies, as far as the project's own use it; what it does not know fails.

Rules: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html,
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Value = str | Sequence[str]


@dataclass(frozen=True)
class Call:
    """A request: `s3:GetObject` on an ARN, with the keys of its context, which have one value or several."""

    action: str
    resource: str
    context: Mapping[str, Value] = field(default_factory=dict)


def is_allowed(call: Call, policies: Iterable[Mapping[str, Any]], boundary: Mapping[str, Any] | None = None) -> bool:
    """Allowed by a statement and denied by none; with a boundary, allowed by that too."""
    documents = list(policies)
    if boundary is not None and not is_allowed(call, [boundary]):
        return False
    effects = {
        statement["Effect"]
        for policy in documents
        for statement in _several(policy["Statement"])
        if _concerns(statement, call)
    }
    return "Allow" in effects and "Deny" not in effects


def is_denied(call: Call, policy: Mapping[str, Any]) -> bool:
    """Whether a statement denies it, whatever others allow."""
    return any(each["Effect"] == "Deny" and _concerns(each, call) for each in _several(policy["Statement"]))


def _concerns(statement: Mapping[str, Any], call: Call) -> bool:
    known = {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Principal", "Condition"}
    assert statement.keys() <= known, statement.keys() - known
    assert ("Action" in statement) != ("NotAction" in statement), statement
    return (
        _chosen(statement, "Action", call.action, ignore_case=True)
        and _chosen(statement, "Resource", call.resource)
        and all(_holds(kind, keys, call.context) for kind, keys in statement.get("Condition", {}).items())
    )


def _chosen(statement: Mapping[str, Any], element: str, text: str, *, ignore_case: bool = False) -> bool:
    if (excluded := statement.get(f"Not{element}")) is not None:
        return not any(matches(each, text, ignore_case=ignore_case) for each in _several(excluded))
    return any(matches(each, text, ignore_case=ignore_case) for each in _several(statement.get(element, "*")))


#: By the operator: whether a value fits what the policy has. Those with Not fit where no value of the policy does.
_FITS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": operator.eq,
    "StringLike": lambda pattern, value: matches(pattern, value),
    "ArnEquals": lambda pattern, value: matches(pattern, value),
    "ArnLike": lambda pattern, value: matches(pattern, value),
    "Bool": lambda wanted, value: wanted.lower() == value.lower(),
    "NumericLessThan": lambda limit, value: float(value) < float(limit),
}


def _holds(kind: str, keys: Mapping[str, Any], context: Mapping[str, Value]) -> bool:
    quantity, _, name = kind.rpartition(":")
    assert quantity in ("", "ForAllValues", "ForAnyValue"), kind
    if name == "Null":
        return all((key not in context) == (wanted == "true") for key, wanted in keys.items())
    if_exists = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    negated = "Not" in name
    fits = _FITS[name.replace("Not", "")]

    def one(value: str, wanted: list[str]) -> bool:
        return any(fits(_literal(each), value) for each in wanted) is not negated

    def each_key(key: str, wanted: list[str]) -> bool:
        if key not in context:
            return if_exists or negated or quantity == "ForAllValues"
        values = _several(context[key])
        assert quantity or len(values) == 1, f"{key} has several values, and {kind} is for one"
        return (
            all(one(value, wanted) for value in values)
            if quantity == "ForAllValues"
            else any(one(value, wanted) for value in values)
        )

    return all(each_key(key, _several(wanted)) for key, wanted in keys.items())


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


_VARIABLE = re.compile(r"\$\{([*?$])\}")


def _literal(text: str) -> str:
    """For operators without patterns; policies have no variables of requests here."""
    assert "${" not in _VARIABLE.sub("", text), text
    return text


def matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether IAM's pattern fits: `*` and `?` are wild, `${*}` is an asterisk."""
    return _expression(pattern, ignore_case).fullmatch(text) is not None


@cache
def _expression(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    expression, rest = "", pattern
    while rest:
        if variable := _VARIABLE.match(rest):
            expression += re.escape(variable[1])
            rest = rest[variable.end() :]
            continue
        assert not rest.startswith("${"), f"the variable in {pattern} is unknown"
        expression += {"*": ".*", "?": "."}.get(rest[0], re.escape(rest[0]))
        rest = rest[1:]
    return re.compile(expression, re.IGNORECASE | re.DOTALL if ignore_case else re.DOTALL)
