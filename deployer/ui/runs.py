"""Runs of services: their progress, and queueing and cancelling runs from a page, where `--allow-runs` is given."""

from __future__ import annotations

from contextlib import closing

from deployer.errors import InvalidInput, Refused
from deployer.platform.system.progress import describe_progress
from deployer.services.api.management import RUNNABLE, cancel, queue
from deployer.state import open_store
from deployer.state.model.services import Run
from deployer.tables.admin.ownership import require_owner
from deployer.tables.open_table import find_entry, open_entry

ACTIONS = ("queue", "cancel")


def describe_run(run: Run) -> str:
    """Returns the progress of an open run: `writing: 1,200 of 3,400 rows (35%)`; empty where it has not reported
    any."""
    doing, done, total, unit = (run.progress.get(name) for name in ("doing", "done", "total", "unit"))
    if isinstance(doing, str) and isinstance(done, int):
        return describe_progress(doing, done, total if isinstance(total, int) else None, str(unit or ""))
    return ", ".join(f"{key} {value}" for key, value in run.progress.items())


def share_of_run(run: Run) -> int | None:
    """Returns the completed share of an open run, in percent; None where it is unknown."""
    done, total = run.progress.get("done"), run.progress.get("total")
    return min(100 * done // total, 100) if isinstance(done, int) and isinstance(total, int) and total > 0 else None


def change_run(root: str, owner: str, name: str, service: str, action: str) -> None:
    """Queues a run of a service that the table has, which the agent or `service run --all` then runs; or cancels one.

    Raises Refused for a table of another stack and for a service that the table does not have, and as `queue` and
    `cancel` do.
    """
    if action not in ACTIONS or service not in RUNNABLE:
        raise InvalidInput("the form names no action or service that there is", remedy="reload the page")
    with closing(open_store(root)) as store:
        entry = find_entry(store.instance().tables.values(), name)
        state = store.table(entry.table_id)
        require_owner(entry, state, owner)
        if service not in state.services:
            raise Refused(f"the table has no {service} service", where=entry.address, remedy="attach it first")
        table = open_entry(store, root, entry)
        if action == "queue":
            queue(table, service)
        else:
            cancel(table, service)
