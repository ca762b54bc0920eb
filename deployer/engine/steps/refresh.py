"""Refreshes a stack: reads every resource from its provider, before anything is compared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from deployer.engine.interfaces.engine import Diagnostic
from deployer.engine.interfaces.provider import InitFailed, ProviderFailed
from deployer.engine.steps.run import Run, operation
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.urns import is_provider_type
from deployer.engine.values.values import changed_keys, keep_secrecy
from deployer.errors import DeployerError, EngineFailed


def refresh_all(run: Run) -> None:
    """Updates the snapshot to the providers' answers, and removes resources that no longer exist.

    Drift is added to `run.drift`. Resources with an answer in `run.refreshed` are not read. Raises `EngineFailed`
    naming every resource that could not be read; earlier answers are kept.
    """
    items = [
        (key, state)
        for key, state in run.snapshot.items()
        if state.custom
        and not is_provider_type(state.type)
        and not state.pending_replacement
        and run.is_target(state.urn)
    ]
    if not items:
        return
    failures: dict[str, str] = {}

    def one(item: tuple[str, ResourceState]) -> None:
        if run.stopping.is_set():
            return
        try:
            _refresh(run, *item)
        except (ProviderFailed, DeployerError) as failure:
            failures[item[1].urn] = str(failure)

    with ThreadPoolExecutor(run.settings.parallel, thread_name_prefix="refresh") as pool:
        list(pool.map(one, items))
    run.refuse_when_stopping()
    if failures:
        for urn, message in failures.items():
            run.fail(urn, "refresh", message)
        raise EngineFailed(
            f"{len(failures)} of {len(items)} resources could not be read: "
            + "; ".join(f"{urn}: {message}" for urn, message in sorted(failures.items())),
            remedy="fix what the messages name and run the command again, or run it without a refresh",
        )


def _refresh(run: Run, key: str, state: ResourceState) -> None:
    reasons: tuple[str, ...] = ()
    live = run.refreshed.answer(state)
    if live is None:
        provider = run.provider_of(state.provider)
        if not provider.known:
            return
        try:
            live = provider.client.read(state.urn, state.id, state.inputs, state.outputs)
            with run.lock:
                run.read[state.urn, state.id] = state, live
        except InitFailed as failure:
            live, reasons = failure.live, failure.reasons
            run.emit(Diagnostic(state.urn, "warning", "; ".join(reasons)))
    if not live.id:
        if not state.delete:
            with run.lock:
                run.drift[state.urn] = operation(state, "delete", state, reason="it no longer exists")
        run.end(None, drop=(key,))
        return
    inputs = state.inputs if live.inputs is None else keep_secrecy(live.inputs, state.inputs)
    live = replace(live, outputs=keep_secrecy(live.outputs, state.outputs))
    if live.outputs == state.outputs and inputs == state.inputs and reasons == state.init_errors:
        return
    found = replace(state, id=live.id, inputs=inputs, outputs=live.outputs, init_errors=reasons)
    kinds: dict[str, Any] = {**changed_keys(state.inputs, inputs), **changed_keys(state.outputs, live.outputs)}
    if kinds and not state.delete:
        with run.lock:
            run.drift[state.urn] = operation(
                found, "refresh", state, reason="it was changed outside of this stack", detailed_diff=kinds
            )
    run.end(None, put={key: found})
