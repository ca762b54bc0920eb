"""Operations that an earlier run began and a kill interrupted.

For resources that the program still has: a create is called again, and a provider of this engine resumes it; the
refresh finds the result of an update or deletion. For another provider, the resource that the create left is read and
taken over if it certainly belongs to the stack. This module settles creates of resources that the program no longer
has.
"""

from __future__ import annotations

import re
from dataclasses import replace

from deployer.engine.interfaces.engine import Diagnostic
from deployer.engine.interfaces.provider import Live, ProviderFailed
from deployer.engine.providers.registry import ConfiguredProvider
from deployer.engine.steps.run import Run
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.values import changed_keys, keep_secrecy, same
from deployer.errors import DeployerError

MOST_IDS = 5  #: number of inputs that are tried as the id of a resource that a killed run created

#: the remedy for a create whose outcome is unknown
UNFINISHED = "an earlier run was killed while creating it, and it may exist outside of the state"
RESOLVE = "delete it by hand, or import it by `import_` in the program"


def settle_unfinished(run: Run) -> None:
    """Settles interrupted creates of resources that the program no longer has.

    A provider that resumes creates finishes the create, so that the resource has an id; then it is deleted with the
    other unregistered resources. For another provider, the operation stays in the state with a warning, as with the
    CLI: only its user can find out what exists.
    """
    if run.settings.dry_run:
        return
    known = {state.urn for state in run.snapshot.resources()}
    for _, pending in list(run.snapshot.inherited()):
        state = pending.resource
        if not run.is_target(state.urn):
            continue
        if state.urn in run.failures and unfinished_create(run, state.urn, run.provider_of(state.provider)):
            continue  # the next run may still find the created resource
        if pending.kind != "creating" or state.urn in known or state.urn in run.failures:
            run.end(None, settles=state.urn)
            continue
        try:
            _finish_create(run, state)
        except (ProviderFailed, DeployerError) as failure:
            run.emit(Diagnostic(state.urn, "warning", f"{UNFINISHED}: {failure}"))


def _finish_create(run: Run, state: ResourceState) -> None:
    provider = run.provider_of(state.provider)
    if not provider.client.resumes_creates:
        raise ProviderFailed(RESOLVE)
    step = run.begin("creating", state)
    try:
        live = provider.client.create(state.urn, state.inputs, 0.0, False)
    except ProviderFailed:
        run.end(step)
        raise
    taken = any(other.type == state.type and other.id == live.id for other in run.snapshot.resources())
    if taken or not live.id:  # another resource of the stack has taken over this object
        run.end(step, settles=state.urn)
    else:
        run.end(step, add=replace(state, id=live.id, outputs=live.outputs, delete=True), settles=state.urn)


def unfinished_create(run: Run, urn: str, provider: ConfiguredProvider) -> ResourceState | None:
    """Returns the resource that an earlier run was creating when it was killed, if the provider cannot resume that;
    otherwise None."""
    if run.settings.dry_run or not provider.known or provider.client.resumes_creates:
        return None
    found = (each.resource for _, each in run.snapshot.inherited() if each.kind == "creating")
    return next((state for state in found if state.urn == urn), None)


def adopt_unfinished(
    run: Run, new: ResourceState, begun: ResourceState, provider: ConfiguredProvider
) -> tuple[str, ResourceState] | None:
    """Reads a resource that a killed run created and did not record into the state, and returns its key and state.

    Returns None where no such resource exists, or it does not certainly belong to the stack. Its id is unknown. Many
    providers name a resource by one of its inputs, so these are tried as ids. A resource is taken over only where the
    provider reports the properties that the killed run began with: the same tags, or no difference.
    """
    for id_ in _possible_ids(begun):
        try:
            live = provider.client.read(new.urn, id_, {}, {})
            if not live.id or not _is_own(begun, live, provider):
                continue
        except (ProviderFailed, DeployerError):  # the id is not valid, or may not be read: the create reports it
            continue
        inputs = keep_secrecy(live.inputs or {}, begun.inputs)
        state = replace(begun, id=live.id, inputs=inputs, outputs=keep_secrecy(live.outputs, begun.inputs))
        key = run.end(None, add=state, settles=new.urn)
        run.emit(Diagnostic(new.urn, "info", f"an earlier run created it and was killed: {live.id} is taken over"))
        return key, state
    return None


def _possible_ids(state: ResourceState) -> list[str]:
    """Returns texts among the inputs that may be the resource's id, names first."""
    texts = {
        name: value
        for name, value in state.inputs.items()
        if isinstance(value, str) and not name.startswith("__") and re.fullmatch(r"[^\s{}\[\]\"]{1,256}", value)
    }
    kind = state.type.lower()
    in_order = sorted(texts, key=lambda name: not (name.lower() in kind or name.lower().endswith("name")))
    return list(dict.fromkeys(texts[name] for name in in_order))[:MOST_IDS]


def _is_own(begun: ResourceState, live: Live, provider: ConfiguredProvider) -> bool:
    found = dict(live.inputs or {})
    diffed = provider.client.diff(begun.urn, live.id, found, live.outputs, begun.inputs, ())
    if diffed.replaces or any(kind.endswith("-replace") for kind in diffed.detailed.values()):
        return False
    tags = begun.inputs.get("tags")
    if tags:
        return same(tags, found.get("tags"))
    return not (changed_keys(found, begun.inputs) if diffed.changes is None else diffed.changes)
