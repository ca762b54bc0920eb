"""The states that a step begins with and ends with."""

from __future__ import annotations

from dataclasses import replace

from deployer.engine.interfaces.provider import InitFailed, Live, ProviderFailed
from deployer.engine.values.goal import Goal
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.values import contains_unknown, keep_secrecy, secret


def desired(goal: Goal, urn: str, old: ResourceState | None) -> ResourceState:
    """Returns the state that a goal describes, before its provider has answered."""
    return ResourceState(
        urn=urn,
        type=goal.type,
        custom=goal.custom,
        inputs=goal.inputs,
        parent=goal.parent,
        protect=goal.protect,
        dependencies=goal.dependencies,
        provider=goal.provider,
        property_dependencies=goal.property_dependencies,
        additional_secret_outputs=goal.additional_secret_outputs,
        custom_timeouts=goal.custom_timeouts,
        import_id=goal.import_id,
        retain_on_delete=goal.retain_on_delete,
        deleted_with=goal.deleted_with,
        replace_with=goal.replace_with,
        ignore_changes=goal.ignore_changes,
        replace_on_changes=goal.replace_on_changes,
        replacement_trigger=goal.replacement_trigger,
        aliases=(old.urn,) if old is not None and old.urn != urn else (),
        extra=old.extra if old is not None else {},
    )


def made_from(goal: Goal, new: ResourceState, live: Live) -> ResourceState:
    outputs = keep_secrecy(live.outputs, new.inputs)
    for name in goal.additional_secret_outputs:
        if name in outputs:
            outputs[name] = secret(outputs[name])
    return replace(new, id=live.id, outputs=outputs)


def unready(new: ResourceState, failure: InitFailed) -> ResourceState:
    live = failure.live
    inputs = new.inputs if live.inputs is None else keep_secrecy(live.inputs, new.inputs)
    outputs = keep_secrecy(live.outputs, new.inputs)
    return replace(new, id=live.id or new.id, inputs=inputs, outputs=outputs, init_errors=failure.reasons)


def refuse_unknown(new: ResourceState) -> None:
    """Raises `ProviderFailed` for unknown values: outside a preview a provider never gets them."""
    unknown = sorted(name for name, value in new.inputs.items() if contains_unknown(value))
    if unknown:
        raise ProviderFailed(f"these inputs are still unknown: {', '.join(unknown)}")


def timeout_of(goal: Goal, operation_name: str) -> float:
    return float(goal.custom_timeouts.get(operation_name, 0.0))
