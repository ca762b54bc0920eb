"""Runs of services whose holder died: the next process that finds their leases expired ends them."""

from __future__ import annotations

from contextlib import suppress

from deployer.errors import Conflict
from deployer.platform.system.clock import Clock
from deployer.state.log.service_updates import RunEnded
from deployer.state.model.entities import TableState
from deployer.state.model.services import Run
from deployer.state.store import StateStore
from deployer.state.transactions.services import to_fail_dead_run


def dead_runs(state: TableState, now: int) -> list[Run]:
    """Returns the running runs whose lease is over at `now` (ms)."""
    running = (run for run in state.runs.values() if run.status == "RUNNING")
    return [run for run in running if run.lease_until is not None and run.lease_until < now]


def fail_dead_runs(store: StateStore, table_id: str, now: int | None = None) -> list[Run]:
    """Fails the runs whose leases have expired, and returns those that this call failed.

    A run that another process failed, or whose holder renewed it, is left alone. A holder that was only slow gets a
    Conflict when it renews. The run of a restore of several tables is ended on all of them by the next open of one
    (`restored_together`).
    """
    at = Clock().now() if now is None else now
    failed = []
    state = store.table(table_id)
    for run in dead_runs(state, at):
        if (intent := state.intents.get(run.run_id)) is not None and intent.together:
            continue
        assert run.lease_until is not None  # noqa: S101 -- dead_runs
        silent = (at - run.lease_until) / 1000
        reason = f"its holder {run.holder} is considered dead: its lease expired {silent:.0f} s ago"
        ended = RunEnded(run.run_id, "FAILED", reason=reason)
        with suppress(Conflict):
            after = store.commit(table_id, [ended], to_fail_dead_run(run.run_id, run.lease_until))
            failed.append(after.runs[run.run_id])
    return failed
