"""Import and read: existing resources that the stack takes over, or only reads."""

from __future__ import annotations

from dataclasses import replace

from deployer.engine.interfaces.provider import ProviderFailed
from deployer.engine.providers.registry import ConfiguredProvider
from deployer.engine.steps.desired import made_from
from deployer.engine.steps.run import Run, operation
from deployer.engine.values.goal import Goal, RegistrationAnswer
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.values import keep_secrecy


def import_resource(
    run: Run, goal: Goal, key: str, old: ResourceState | None, new: ResourceState, provider: ConfiguredProvider
) -> tuple[str, ResourceState]:
    """Reads the resource that `import_` names into the state; the caller then compares it with the program.

    A resource that had the name before is deleted later. Returns the key and state of the imported resource.
    """
    run.record(operation(new, "import", old))
    with run.step(new.urn, "import") as timer:
        step = run.begin("reading", replace(new, id=goal.import_id))
        try:
            live = provider.client.read(new.urn, goal.import_id, {}, {})
            if not live.id:
                raise ProviderFailed(f"there is nothing with the id {goal.import_id!r} to import")
        except ProviderFailed:
            run.end(step)
            raise
        found = replace(
            new,
            id=live.id,
            import_id=goal.import_id,
            inputs=keep_secrecy(live.inputs or {}, goal.inputs),
            outputs=made_from(goal, new, live).outputs,
        )
        put = {key: replace(old, delete=True)} if old is not None and not old.external else {}
        drop = (key,) if old is not None and old.external else ()
        imported_key = run.end(step, add=found, put=put, drop=drop, settles=new.urn)
        timer.outputs = found.outputs
    run.record(operation(found, "import", old))
    return imported_key, found


def read_resource(run: Run, goal: Goal, urn: str, id_: str, key: str, old: ResourceState | None) -> RegistrationAnswer:
    """Reads a resource that the stack does not own (`Resource.get(…)`), and stores it in the state as external."""
    provider = run.provider_of(goal.provider)
    state = ResourceState(
        urn=urn,
        type=goal.type,
        custom=True,
        id=id_,
        inputs=goal.inputs,
        parent=goal.parent,
        external=True,
        dependencies=goal.dependencies,
        provider=goal.provider,
        additional_secret_outputs=goal.additional_secret_outputs,
    )
    with run.step(urn, "read") as timer:
        if not provider.known:
            return RegistrationAnswer(urn)
        live = provider.client.read(urn, id_, goal.inputs, goal.inputs)
        if not live.id:
            raise ProviderFailed(f"there is nothing with the id {id_!r} to read")
        state = made_from(goal, state, live)
        run.record(operation(state, "read", old))
        if old is None or old.external or old.id == live.id:
            run.end(None, add=state, drop=(key,) if key else (), settles=urn)
        else:  # the stack owned another resource of this name, which is to be deleted
            run.replaced.add(urn)
            run.end(None, add=state, put={key: replace(old, delete=True)}, settles=urn)
        timer.outputs = state.outputs
    return RegistrationAnswer(urn, state.id, state.outputs)
