"""Operations that an earlier run began and a kill cut off.

What the program still has settles itself: a create is called again, which a provider of this engine takes up where
it stopped, an update or deletion is seen by the refresh. What is left are creates of resources that the program does
not have any more.
"""

from __future__ import annotations

from deployer.engine.interfaces.engine import Diagnostic
from deployer.engine.interfaces.provider import ProviderFailed
from deployer.engine.steps.run import Run
from deployer.engine.values.resource import ResourceState
from deployer.errors import DeployerError


def settle_unfinished(run: Run) -> None:
    """Clears what was begun and is not wanted any more.

    A provider that resumes creates finishes the create, so that there is an id, and the resource is then deleted
    with whatever else the program left. Of another provider's the operation stays in the state with a warning, as
    the CLI keeps it: only its user can find out what exists.
    """
    if run.settings.dry_run:
        return
    known = {state.urn for state in run.snapshot.resources()}
    for _, pending in list(run.snapshot.inherited()):
        state = pending.resource
        if not run.is_target(state.urn):
            continue
        if pending.kind != "creating" or state.urn in known or state.urn in run.failures:
            run.end(None, settles=state.urn)
            continue
        try:
            _finish_create(run, state)
        except (ProviderFailed, DeployerError) as failure:
            run.emit(
                Diagnostic(
                    state.urn, "warning", f"an earlier run was killed while creating it, and it may exist: {failure}"
                )
            )


def _finish_create(run: Run, state: ResourceState) -> None:
    from dataclasses import replace

    provider = run.provider_of(state.provider)
    if not provider.client.resumes_creates:
        raise ProviderFailed("import it or delete it by hand")
    step = run.begin("creating", state)
    try:
        live = provider.client.create(state.urn, state.inputs, 0.0, False)
    except ProviderFailed:
        run.end(step)
        raise
    taken = any(other.type == state.type and other.id == live.id for other in run.snapshot.resources())
    if taken or not live.id:  # another resource of the stack is this very thing by now
        run.end(step, settles=state.urn)
    else:
        run.end(step, add=replace(state, id=live.id, outputs=live.outputs, delete=True), settles=state.urn)
