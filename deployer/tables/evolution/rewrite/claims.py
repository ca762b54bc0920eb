"""Waits for runs that write columns of a table, before the table is rewritten."""

from __future__ import annotations

from deployer.datasets.recovery.dead_runs import fail_dead_runs
from deployer.errors import Conflict
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import OnProgress, Progress
from deployer.state.log.service_requirements import FragmentsUnclaimed
from deployer.state.store import StateStore

WAIT = 600.0  #: seconds that a rewrite waits
POLL = 0.5  #: seconds between two checks
_CLOCK = Clock()


def wait_for_writers(
    store: StateStore, table_id: str, where: str, on_progress: OnProgress, clock: Clock = _CLOCK
) -> bool:
    """Waits until no run claims fragments of the table; returns whether a run did, and so may have changed the table.

    Runs with expired leases are ended. Raises Conflict, which names the run, after `WAIT` seconds, and the exceptions
    of `on_progress`.
    """
    until, waited = clock.monotonic() + WAIT, False
    while True:
        fail_dead_runs(store, table_id)
        if (writing := FragmentsUnclaimed().failure(store.table(table_id))) is None:
            return waited
        if clock.monotonic() >= until:
            raise Conflict(
                f"the table cannot be rewritten: {writing}",
                where=where,
                remedy="run it again when that run is over, or cancel the run",
            )
        on_progress(Progress(f"waiting, as {writing}", 0, None))
        clock.sleep(POLL)
        waited = True
