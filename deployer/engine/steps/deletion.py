"""Deletes resources that the program no longer registers; dependents come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from deployer.engine.interfaces.engine import Diagnostic
from deployer.engine.interfaces.provider import ProviderFailed
from deployer.engine.steps.provider_steps import _is_default
from deployer.engine.steps.replacing import call_delete
from deployer.engine.steps.run import Run, operation
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.urns import is_provider_type
from deployer.errors import DeployerError

Keyed = tuple[str, ResourceState]


def delete_unseen(run: Run, is_seen: Callable[[str], bool]) -> None:
    """Deletes every resource of the state that is no longer registered or was replaced.

    Protected resources, resources that a protected or failed resource needs, and resources outside the targets stay. A
    protected resource is a failure.
    """
    items = list(run.snapshot.items())
    doomed: dict[str, ResourceState] = {}
    kept: list[ResourceState] = []
    for key, state in items:
        if not (state.delete or (key.startswith("b") and not is_seen(state.urn))):
            if state.urn in run.failures:
                kept.append(state)
            continue
        if not run.is_target(state.urn):
            kept.append(state)
        elif not state.delete and not run.may_destroy(state):
            kept.append(state)
            run.record(operation(state, "delete", state))
            run.fail(
                state.urn,
                "delete",
                "it is protected and not in the program any more; put it back, or allow its deletion by name",
            )
        else:
            doomed[key] = state
    for key in _needed(kept, doomed):
        state = doomed.pop(key)
        run.emit(Diagnostic(state.urn, "warning", "not deleted: something that stays needs it"))
    for state in doomed.values():
        if not state.delete and not _is_default(state.urn):
            stays = ", and stays where it is" if state.retain_on_delete else ""
            run.record(operation(state, "delete", state, reason=f"not in the program any more{stays}"))
    if run.settings.dry_run:
        return
    _in_parallel(run, doomed)


def _needed(kept: Iterable[ResourceState], doomed: dict[str, ResourceState]) -> set[str]:
    """Returns the keys of resources that cannot be deleted because a resource that stays needs them, directly or
    through others."""
    by_urn: dict[str, list[str]] = {}
    for key, state in doomed.items():
        by_urn.setdefault(state.urn, []).append(key)
    needed: set[str] = set()
    open_ = [urn for state in kept for urn in state.needs()]
    while open_:
        for key in by_urn.get(open_.pop(), ()):
            if key not in needed:
                needed.add(key)
                open_.extend(doomed[key].needs())
    return needed


def _in_parallel(run: Run, doomed: dict[str, ResourceState]) -> None:
    """Deletes each resource as soon as all its dependents are deleted."""
    by_urn: dict[str, list[str]] = {}
    for key, state in doomed.items():
        by_urn.setdefault(state.urn, []).append(key)
    dependents = dict.fromkeys(doomed, 0)
    needs: dict[str, list[str]] = {}
    for key, state in doomed.items():
        needs[key] = [other for urn in state.needs() for other in by_urn.get(urn, ()) if other != key]
        for other in needs[key]:
            dependents[other] += 1
    ready = [key for key, count in dependents.items() if count == 0]
    running: dict[Future[bool], str] = {}
    with ThreadPoolExecutor(run.settings.parallel, thread_name_prefix="delete") as pool:
        while ready or running:
            if run.stopping.is_set():
                ready.clear()
            for key in ready:
                running[pool.submit(_delete, run, key, doomed[key])] = key
            ready = []
            if not running:
                break
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                key = running.pop(future)
                if not future.result():
                    continue  # its dependencies stay, because the resource still exists
                for other in needs[key]:
                    dependents[other] -= 1
                    if dependents[other] == 0:
                        ready.append(other)
    run.refuse_when_stopping()


def _delete(run: Run, key: str, state: ResourceState) -> bool:
    """Deletes one resource, and returns whether it was deleted."""
    if not state.custom or is_provider_type(state.type):
        run.end(None, drop=(key,), settles="" if state.delete else state.urn)
        return True
    op = "delete-replaced" if state.delete or state.pending_replacement else "delete"
    try:
        with run.step(state.urn, op):  # type: ignore[arg-type]
            step = run.begin("deleting", state)
            try:
                call_delete(run, state)
            except BaseException:
                run.end(step)
                raise
            with run.lock:
                run.deleted.add(state.urn)
            run.end(step, drop=(key,), settles="" if state.delete else state.urn)
    except (ProviderFailed, DeployerError) as failure:
        run.fail(state.urn, op, str(failure))  # type: ignore[arg-type]
        return False
    return True
