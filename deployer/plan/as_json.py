"""A plan as JSON: the document that `preview --format json` prints and tools read."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from deployer.plan.plan import Plan, PlannedChange, ResourcePlan
from deployer.plan.words import describe
from deployer.specs.indexes import index_to_json
from deployer.specs.json_form import column_to_json, instance_to_json, table_to_json
from deployer.specs.model import IndexSpec, InstanceSpec, TableSpec
from deployer.specs.types import Column, ColumnType, format_type

#: Raised when a reader of the document must know; readers refuse a later one.
FORMAT_VERSION = 1


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """The whole plan; resources without changes are counted and not listed."""
    return {
        "format": FORMAT_VERSION,
        "instance": plan.instance,
        "counts": plan.counts(),
        "refused": len(plan.refused),
        "resources": [_resource(resource) for resource in plan.resources if resource.changes],
        "foreign": [{"address": item.address, "action": item.action, "detail": item.detail} for item in plan.foreign],
    }


def _resource(resource: ResourcePlan) -> dict[str, Any]:
    return {
        "address": resource.address,
        "action": resource.action,
        "rows": resource.statistics.rows,
        "bytes": resource.statistics.bytes,
        "changes": [_change(change) for change in resource.changes],
    }


def _change(planned: PlannedChange) -> dict[str, Any]:
    change = planned.change
    return {
        "kind": type(change).__name__,
        "summary": describe(change),
        "risk": planned.assessment.risk.value,
        "rows": planned.assessment.rows,
        "bytes": planned.assessment.bytes,
        "why": planned.assessment.why,
        "cause": str(planned.cause) if planned.cause else None,
        "refused": planned.refused,
        "details": {item.name: _value(getattr(change, item.name)) for item in fields(change) if item.name != "address"},
    }


def _value(value: object) -> Any:
    match value:
        case Column():
            return column_to_json(value)
        case TableSpec():
            return table_to_json(value)
        case InstanceSpec():
            return instance_to_json(value)
        case IndexSpec():
            return index_to_json(value)
        case tuple():
            return [_value(item) for item in value]
        case bytes():
            return value.hex()
        case str() | bool() | int() | float() | None:
            return value
        case dict():
            return {key: _value(item) for key, item in value.items()}
        case _ if isinstance(value, ColumnType):
            return format_type(value)
        case _:
            return {item.name: _value(getattr(value, item.name)) for item in fields(value)}  # type: ignore[arg-type]
