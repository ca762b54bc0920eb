"""Runs the services whose conditions hold at the end of a load."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.errors import DeployerError, Interrupted
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.runs.runner import RunRequest
from deployer.services.registry import run_service
from deployer.services.triggers.due import Due, due_services
from deployer.state import open_store
from deployer.state.model.services import ServiceKind
from deployer.tables.open_table import find_entry, open_entry

if TYPE_CHECKING:
    from deployer.compute.spark.local import LocalCluster


@dataclass(frozen=True, slots=True)
class AfterLoad:
    """A service that was due, with the result of its run (`done`) or the reason why it failed (`failure`)."""

    service: ServiceKind
    why: str
    done: Any = None
    failure: str = ""

    def as_json(self) -> dict[str, str]:
        """Returns the JSON form. `status` is the status of the run, or empty where there is no result."""
        status = self.done.status if self.done is not None else ""
        return {"service": self.service, "why": self.why, "status": status, "failure": self.failure}


def run_due_services(
    root: str,
    table: str,
    cluster: Callable[[], LocalCluster] | None = None,
    on_progress: OnProgress = no_progress,
    on_begin: Callable[[Due], None] = lambda _due: None,
) -> list[AfterLoad]:
    """Runs the due services of `table` one after another; returns the outcome of each.

    The load is already done, so this raises only Interrupted. A service that fails has a failed run and a `failure`. A
    service that another process is running is not run again.
    """
    try:
        with closing(open_store(root)) as store:
            entry = find_entry(store.instance().tables.values(), table)
            if not store.table(entry.table_id).services:
                return []  # most tables have no services, so the dataset is not opened
            due = due_services(open_entry(store, root, entry))
    except DeployerError:
        return []  # the next load or agent checks again
    found = []
    for each in due:
        on_begin(each)
        asked = RunRequest(cause=each.cause, new_id=each.run_id)
        try:
            done = run_service(root, table, each.service, cluster=cluster, on_progress=on_progress, asked=asked)
        except Interrupted:
            raise
        except DeployerError as error:
            found.append(AfterLoad(each.service, each.why, failure=str(error)))
        else:
            found.append(AfterLoad(each.service, each.why, done))
    return found
