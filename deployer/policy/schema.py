"""The JSON Schema of YAML in `policies/`, which checks documents and lets editors complete them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.plan.verdict import Enforcement
from deployer.policy.builtin import BUILTIN
from deployer.policy.model import NAME

_TEXT = {"type": "string", "minLength": 1, "maxLength": 1000}
_GLOBS = {"type": "array", "items": _TEXT, "minItems": 1}
_NAME = _TEXT | {"pattern": f"^{NAME}$", "patternErrorMessage": "use small letters and digits with - between words"}
_STACKS = _GLOBS | {"description": "Globs of the stacks that it applies to; all by default."}
_COMMON: Mapping[str, Any] = {
    "kind": {"const": "Policy"},
    "rule": {"type": "string", "enum": list(BUILTIN), "description": "A rule that is built in."},
    "name": _NAME | {"description": "Name in violations and approvals; the rule's own name by default."},
    "enforcement": {
        "type": "string",
        "enum": [each.value for each in Enforcement],
        "default": Enforcement.MANDATORY.value,
        "description": "Whether `up` refuses what breaks it.",
    },
    "description": _TEXT,
    "stacks": _STACKS,
    "addresses": _GLOBS
    | {"description": 'Globs of the resources that it applies to, such as "table/nyc.*"; everything by default.'},
}

APPROVAL: Mapping[str, Any] = {
    "title": "Approval",
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "rule", "address", "by", "reason", "until"],
    "properties": {
        "kind": {"const": "Approval"},
        "rule": _NAME | {"description": "The name of the rule."},
        "address": _TEXT | {"description": "The resource that may break it, such as table/nyc.flights."},
        "column": _TEXT | {"description": "The only column that may break it, as a dotted path."},
        "by": _TEXT | {"description": "The person who approves."},
        "reason": _TEXT | {"description": "The reason, or the ticket that has it."},
        "until": _TEXT | {"description": "The last day (UTC), as 2026-12-31."},
        "stacks": _STACKS,
    },
}


def policy_schema(rule: str) -> Mapping[str, Any]:
    """Returns the JSON Schema of a document that configures the built-in rule `rule`."""
    builtin = BUILTIN[rule]
    return {
        "title": f"Policy {rule}",
        "description": builtin.summary,
        "type": "object",
        "additionalProperties": False,
        "required": ["kind", "rule", *builtin.required],
        "properties": {**_COMMON, **builtin.properties},
    }


def policies_schema() -> dict[str, Any]:
    """Returns the JSON Schema of any document in a YAML file of `policies/`, for editors."""
    rules = []
    for name, builtin in BUILTIN.items():
        schema = dict(policy_schema(name))
        schema["properties"] = {**schema["properties"], "rule": {"const": name}}
        if builtin.one_of:
            schema["anyOf"] = [{"required": [option]} for option in builtin.one_of]
        rules.append(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "oneOf": [*rules, APPROVAL]}
