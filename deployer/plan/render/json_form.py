"""A plan as JSON: the document that `preview --format json` prints and tools read."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from deployer.plan.assess.new_recordings import recordings_as_json
from deployer.plan.assess.pending_backfills import pending_as_json
from deployer.plan.assess.view_refreshes import refresh_as_json
from deployer.plan.model import Plan, PlannedChange, ResourcePlan
from deployer.plan.removals import removal_as_json
from deployer.plan.render.changes import describe
from deployer.plan.targeting.outside_targets import Outside, begins_to_send
from deployer.plan.targeting.targets import Targets, targets_as_json
from deployer.specs.declarations.indexes import index_to_json
from deployer.specs.model import IndexSpec, InstanceSpec, ServiceSpec, TableSpec, Trigger
from deployer.specs.serialized.services import service_to_json, trigger_to_json
from deployer.specs.serialized.specs import column_to_json, instance_to_json, table_to_json
from deployer.specs.types.computed import Computed, computed_to_json
from deployer.specs.types.types import Column, ColumnType, format_type

if TYPE_CHECKING:
    from deployer.live.model import Unreadable
    from deployer.plan.assess.cost_delta import MonthlyCost
    from deployer.plan.saved.seal import SavedAs
    from deployer.plan.verdict import Verdict, Violation

#: the version of the document; it is raised when readers must know of a change, and readers refuse a later one
FORMAT_VERSION = 1


def plan_as_json(plan: Plan, against: str | None = None, saved: SavedAs | None = None) -> dict[str, Any]:
    """Returns the whole plan; resources without changes are counted and not listed.

    `against`: the Git ref whose specs the plan was made from, where no live state was read. `saved`: the plan's file.
    """
    return {
        "format": FORMAT_VERSION,
        "instance": plan.instance,
        **({} if against is None else {"against": against}),
        **({"targets": targets_as_json(plan.targets)} if plan.targets else {}),
        "counts": plan.counts(),
        "refused": len(plan.refused) + len(plan.refused_removals),
        "resources": [_resource(resource) for resource in plan.resources if resource.changes],
        **({"unreadable": [_unreadable(table) for table in plan.unreadable]} if plan.unreadable else {}),
        "foreign": [{"address": item.address, "action": item.action, "detail": item.detail} for item in plan.foreign],
        **({"removals": [removal_as_json(each) for each in plan.removals]} if plan.removals else {}),
        **({"pending_backfills": list(map(pending_as_json, plan.pending_backfills))} if plan.pending_backfills else {}),
        **({"refreshes": [refresh_as_json(each) for each in plan.refreshes]} if plan.refreshes else {}),
        **({"recordings": list(map(recordings_as_json, plan.recordings))} if plan.recordings else {}),
        **({"policy": verdict_as_json(plan.verdict)} if plan.verdict else {}),
        **({"cost": _cost(plan.cost)} if plan.cost else {}),
        **({"saved": saved_as_json(saved)} if saved else {}),
    }


def saved_as_json(saved: SavedAs) -> dict[str, Any]:
    """Returns the file of a plan, its digest and the id of the key that signed it."""
    return {"file": saved.file, "digest": saved.digest, "signed_by": saved.signed_by or None}


def _unreadable(table: Unreadable) -> dict[str, Any]:
    return {"address": table.address, "what": table.what, "remedy": table.remedy or None}


def _cost(cost: MonthlyCost) -> dict[str, Any]:
    known = cost.region is not None
    return {
        "monthly_before": round(cost.before, 4) if known else None,
        "monthly_after": round(cost.after, 4) if known else None,
        "monthly_change": round(cost.change, 4) if known else None,
        "currency": cost.currency,
        "region": cost.region,
        "dated": cost.dated,
        "unknown": list(cost.unknown),
    }


def verdict_document(instance: str, verdict: Verdict, targets: Targets | None = None) -> dict[str, Any]:
    """Returns only the verdict of policies: the document that `preview --policy-only --format json` prints."""
    return {
        "format": FORMAT_VERSION,
        "instance": instance,
        **({"targets": targets_as_json(targets)} if targets else {}),
        "policy": verdict_as_json(verdict),
    }


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """Returns the verdict of policies, as a part of the plan's document."""
    return {
        "ref": verdict.ref or None,
        "counts": verdict.counts(),
        "rules": [
            {
                "name": rule.name,
                "enforcement": rule.enforcement.value,
                "description": rule.description,
                "at": str(rule.at),
            }
            for rule in verdict.rules
        ],
        "violations": [_violation(violation) for violation in verdict.violations],
        "notes": list(verdict.notes),
    }


def _violation(violation: Violation) -> dict[str, Any]:
    return {
        "rule": violation.rule,
        "enforcement": violation.enforcement.value,
        "address": violation.address,
        "column": violation.column or None,
        "message": violation.message,
        "cause": str(violation.at) if violation.at else None,
        "approved": violation.approved or None,
    }


def _resource(resource: ResourcePlan) -> dict[str, Any]:
    return {
        "address": resource.address,
        "action": resource.action,
        "rows": resource.statistics.rows,
        "bytes": resource.statistics.bytes,
        **({"savepoints": list(resource.savepoints)} if resource.savepoints else {}),
        "changes": [_change(change) for change in resource.changes],
    }


def _change(planned: PlannedChange) -> dict[str, Any]:
    change = planned.change
    return {
        "kind": change.kind,
        "summary": describe(change),
        "risk": planned.assessment.risk.value,
        "rows": planned.assessment.rows,
        "bytes": planned.assessment.bytes,
        **({"bytes_about": True} if planned.assessment.about else {}),
        "why": planned.assessment.why,
        **({"sends_to": [_catalog(each) for each in sent]} if (sent := begins_to_send(change)) else {}),
        "cause": str(planned.cause) if planned.cause else None,
        "refused": planned.refused,
        "details": {
            item.name: value_as_json(getattr(change, item.name)) for item in fields(change) if item.name != "address"
        },
    }


def _catalog(catalog: Outside) -> dict[str, Any]:
    return {"target": catalog.kind, "name": catalog.name, "token_variable": catalog.token or None}


def value_as_json(value: object) -> Any:
    """Returns a part of a change as JSON."""
    match value:
        case Column():
            return column_to_json(value)
        case TableSpec():
            return table_to_json(value)
        case InstanceSpec():
            return instance_to_json(value)
        case IndexSpec():
            return index_to_json(value)
        case ServiceSpec():
            return {"kind": value.kind, **service_to_json(value)}
        case Trigger():
            return trigger_to_json(value)
        case tuple() | list():
            return [value_as_json(item) for item in value]
        case bytes():
            return value.hex()
        case str() | bool() | int() | float() | None:
            return value
        case dict():
            return {key: value_as_json(item) for key, item in value.items()}
        case _ if isinstance(value, Computed):
            return computed_to_json(value)
        case _ if isinstance(value, ColumnType):
            return format_type(value)
        case _:
            return {item.name: value_as_json(getattr(value, item.name)) for item in fields(value)}  # type: ignore[arg-type]
