"""IAM's evaluation of policies, as far as the project's own use it; what it does not know fails.

Rules: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A request: `s3:GetObject` on an ARN, with the keys of its context."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


def is_allowed(call: Call, policies: Iterable[Mapping[str, Any]]) -> bool:
    """Allowed by a statement and denied by none."""
    effects = {
        statement["Effect"] for policy in policies for statement in policy["Statement"] if _concerns(statement, call)
    }
    return "Allow" in effects and "Deny" not in effects


def _concerns(statement: Mapping[str, Any], call: Call) -> bool:
    known = {"Sid", "Effect", "Action", "Resource", "Principal", "Condition"}
    assert statement.keys() <= known, statement.keys() - known
    return (
        any(_matches(pattern, call.action, ignore_case=True) for pattern in _several(statement["Action"]))
        and any(_matches(pattern, call.resource) for pattern in _several(statement.get("Resource", call.resource)))
        and all(_holds(kind, keys, call) for kind, keys in statement.get("Condition", {}).items())
    )


def _holds(kind: str, keys: Mapping[str, Any], call: Call) -> bool:
    assert kind in ("StringLike", "StringEquals", "ArnEquals", "ArnLike", "Bool"), kind
    return all(
        key in call.context
        and any(
            pattern == call.context[key] if kind == "StringEquals" else _matches(pattern, call.context[key])
            for pattern in _several(patterns)
        )
        for key, patterns in keys.items()
    )


def _several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    expression = "".join(".*" if part == "*" else "." if part == "?" else re.escape(part) for part in pattern)
    return re.fullmatch(expression, text, re.IGNORECASE if ignore_case else 0) is not None
