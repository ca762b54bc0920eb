"""Deletes a resource before its replacement is created, and before that all resources that have to be replaced with
it."""

from __future__ import annotations

from dataclasses import replace

from deployer.engine.interfaces.provider import ProviderFailed
from deployer.engine.steps.decide import compared, verdict_of
from deployer.engine.steps.run import Run
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.urns import is_provider_type, split_reference
from deployer.engine.values.values import UNKNOWN


def delete_before_replacing(run: Run, key: str, old: ResourceState) -> None:
    """Deletes `old` and its dependents that its replacement forces to be replaced, dependents first.

    They stay in the state as pending replacements until the program registers them again. Raises `ProviderFailed` for
    the first failed deletion, or when a dependent is protected.
    """
    doomed = [*_dependents(run, old), (key, old)]
    for _, state in doomed[:-1]:
        if not run.may_destroy(state):
            raise ProviderFailed(f"{state.urn} depends on it, would be replaced with it, and is protected")
    # `doomed` has dependents in dependency order, then the resource itself, on which they depend
    for doomed_key, state in [*reversed(doomed[:-1]), doomed[-1]]:
        run.refuse_when_stopping()
        remove(run, doomed_key, state)


def remove(run: Run, key: str, state: ResourceState) -> None:
    """Deletes one resource through its provider and marks it as waiting for its replacement."""
    gone = replace(state, pending_replacement=True)
    if run.settings.dry_run:
        run.end(None, put={key: gone})
        return
    with run.step(state.urn, "delete-replaced"):
        step = run.begin("deleting", state)
        try:
            call_delete(run, state)
        except ProviderFailed:
            run.end(step)
            raise
        run.end(step, put={key: gone}, settles=state.urn)
        run.deleted.add(state.urn)


def call_delete(run: Run, state: ResourceState) -> None:
    """Calls the provider for a deletion. Does not call it for resources that are kept, only read, or deleted with
    another resource."""
    if (
        not state.custom
        or is_provider_type(state.type)
        or state.external
        or state.retain_on_delete
        or state.pending_replacement
        or (state.deleted_with and state.deleted_with in run.deleted)
    ):
        return
    provider = run.provider_of(state.provider)
    timeout = float(state.custom_timeouts.get("delete", 0.0))
    provider.client.delete(state.urn, state.id, state.inputs, state.outputs, timeout)


def _dependents(run: Run, root: ResourceState) -> list[tuple[str, ResourceState]]:
    """Returns the resources that must be replaced because `root` is replaced, in dependency order.

    A dependent must be replaced in three cases: its provider is replaced; it is deleted with a replaced resource; or
    its provider's diff requires it when the properties from replaced resources are unknown. Resources that the program
    has already registered cannot depend on one that it registers now.
    """
    replaced = {root.urn}
    found: list[tuple[str, ResourceState]] = []
    for key, state in list(run.snapshot.old_items()):
        if state.delete or state.urn == root.urn or not state.custom or state.external or state.pending_replacement:
            continue
        if state.urn in run.live:
            continue
        if _is_replaced_with(run, state, replaced):
            replaced.add(state.urn)
            found.append((key, state))
    return found


def _is_replaced_with(run: Run, state: ResourceState, replaced: set[str]) -> bool:
    if state.provider and split_reference(state.provider)[0] in replaced:
        return True
    if state.deleted_with in replaced:
        return True
    touched = {name for name, urns in state.property_dependencies.items() if replaced.intersection(urns)}
    if not touched or is_provider_type(state.type):
        return False
    provider = run.provider_of(state.provider)
    if not provider.known:
        return True
    inputs = {name: UNKNOWN if name in touched else value for name, value in state.inputs.items()}
    diffed = compared(provider, state, inputs, state.ignore_changes)
    return verdict_of(diffed, state.replace_on_changes, unready=False).op == "replace"
